"""Networks of other packages for the table of `networks`, from their configurations: nothing is downloaded.

A package that is not installed gives none. ``python -m pip install transformers`` and ``ultralytics``, the
latter without what it depends on, which includes PyTorch: ``--no-deps ultralytics ultralytics-thop``,
``opencv-python-headless polars py-cpuinfo``.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch


class Subject(NamedTuple):
    """A network, what it is called with, and the modules where it ends if its own end has no fixed size."""

    model: torch.nn.Module
    inputs: Any
    outputs_at: Sequence[str] | None = None


Maker = Callable[[], Subject]


def transformers_networks() -> dict[str, Maker]:
    """Return makers of a small BERT, ViT and Whisper encoder."""
    return {"bert": _bert, "vit": _vit, "whisper_encoder": _whisper_encoder} if _has("transformers") else {}


def ultralytics_networks() -> dict[str, Maker]:
    """Return makers of YOLO networks, from the definitions that the package brings."""
    names = ("yolov8n", "yolo11n", "yolov8n-seg", "yolov8n-cls", "yolov5n")
    return {name: _yolo_maker(name) for name in names} if _has("ultralytics") else {}


def detector_networks() -> dict[str, Maker]:
    """Return makers of torchvision's detectors, cut at the layers before boxes are chosen."""
    ends = {
        "fcos_resnet50_fpn": ["head"],
        "retinanet_resnet50_fpn": ["head"],
        "retinanet_resnet50_fpn_v2": ["head"],
        "ssd300_vgg16": ["head"],
        "ssdlite320_mobilenet_v3_large": ["head"],
        "fasterrcnn_mobilenet_v3_large_320_fpn": ["rpn.head"],
        "maskrcnn_resnet50_fpn": ["rpn.head"],
    }
    return {name: _detector_maker(name, modules) for name, modules in ends.items()}


def quantizable_networks() -> dict[str, Maker]:
    """Return makers of torchvision's networks made for quantization, not quantized."""
    from torchvision.models import list_models, quantization

    return {name: _quantizable_maker(name) for name in list_models(module=quantization)}


def _has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _bert() -> Subject:
    transformers: Any = importlib.import_module("transformers")
    config = transformers.BertConfig(
        hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512
    )
    words = torch.randint(0, config.vocab_size, (1, 16))
    return Subject(
        transformers.BertModel(config), {"input_ids": words, "attention_mask": (words > 99).long()}
    )


def _vit() -> Subject:
    transformers: Any = importlib.import_module("transformers")
    config = transformers.ViTConfig(
        hidden_size=192, num_hidden_layers=3, num_attention_heads=3, intermediate_size=768
    )
    return Subject(transformers.ViTModel(config), torch.randn(1, 3, 224, 224))


def _whisper_encoder() -> Subject:
    transformers: Any = importlib.import_module("transformers")
    config = transformers.WhisperConfig(
        d_model=128,
        encoder_layers=2,
        encoder_attention_heads=4,
        encoder_ffn_dim=256,
        decoder_layers=1,
        decoder_attention_heads=4,
    )
    encoder: torch.nn.Module = transformers.WhisperModel(config).get_encoder()
    return Subject(encoder, torch.randn(1, 80, 3000))


def _yolo_maker(name: str) -> Maker:
    def make() -> Subject:
        tasks: Any = importlib.import_module("ultralytics.nn.tasks")
        kinds = {"seg": tasks.SegmentationModel, "cls": tasks.ClassificationModel}
        kind: Any = kinds.get(name.partition("-")[2], tasks.DetectionModel)
        return Subject(kind(f"{name}.yaml", verbose=False), torch.rand(1, 3, 320, 320))

    return make


def _detector_maker(name: str, modules: Sequence[str]) -> Maker:
    def make() -> Subject:
        from torchvision.models import get_model

        model: torch.nn.Module = get_model(name, weights=None, weights_backbone=None)
        return Subject(model, ([torch.rand(3, 160, 160)],), modules)

    return make


def _quantizable_maker(name: str) -> Maker:
    def make() -> Subject:
        from torchvision.models import quantization

        options: dict[str, Any] = {"weights": None, "quantize": False}
        if name in ("quantized_googlenet", "quantized_inception_v3"):
            options["init_weights"] = False
        model: torch.nn.Module = getattr(quantization, name.removeprefix("quantized_"))(**options)
        size = 299 if "inception" in name else 224
        return Subject(model, torch.randn(1, 3, size, size))

    return make
