"""Prints which of torchvision's and timm's networks each opset expresses, and the error of the files.

``python -m tests.onnx_out.networks OPSET ... [NAME ...]``. Each is traced once, written at each opset, passed
by ONNX's checker with full inference of shapes, run by onnxruntime and compared with PyTorch: the largest
error of each output as a part of its scale.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch

from caffeforge.runtime.backends import find_any
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.onnx_out.backend import OnnxBackend
from caffeforge.runtime.onnx_out.export import convert, write_files
from caffeforge.runtime.torch_front import trace

LARGE = ("vit_h_14", "vit_l_16", "vit_l_32", "regnet_y_128gf", "regnet_y_32gf", "regnet_x_32gf")
TOLERANCE = 1e-4  # of the scale
TIMM = (  # small ones of many families, for images of 224 by 224 unless they say otherwise
    "convnext_atto convnextv2_atto crossvit_tiny_240 deit_tiny_patch16_224 dla46_c dla60x_c "
    "edgenext_xx_small efficientformer_l1 efficientvit_b0 efficientvit_m0 fbnetc_100 gernet_s "
    "ghostnet_050 gmlp_ti16_224 hardcorenas_a hrnet_w18_small inception_next_atto lcnet_050 levit_128s "
    "mixer_s32_224 mnasnet_small mobilenetv3_small_050 mobilenetv4_conv_small_050 mobileone_s0 "
    "mobilevit_xxs mobilevitv2_050 pit_ti_224 poolformer_s12 pvt_v2_b0 regnetz_005 repghostnet_050 "
    "repvgg_a0 resmlp_12_224 resnet10t resnext26ts rexnet_100 selecsls42 semnasnet_075 skresnet18 "
    "starnet_s1 tiny_vit_5m_224 tinynet_e visformer_tiny xcit_nano_12_p16_224"
)


def names() -> list[str]:
    """Return classifiers and segmentation networks that this machine can hold, small ones first."""
    from torchvision.models import list_models, segmentation

    found = [*list_models(module=__import__("torchvision").models), *list_models(module=segmentation)]
    found = [name for name in found if name not in LARGE]
    return found + (TIMM.split() if find_spec("timm") is not None else [])


def model_of(name: str) -> torch.nn.Module:
    """Return a network with seeded random weights; none that begin as zeros, which would hide errors."""
    from torchvision.models import get_model, segmentation

    torch.manual_seed(0)
    if name in TIMM.split():
        made: torch.nn.Module = import_module("timm").create_model(name, pretrained=False)
        return _without_zeros(made)
    more: dict[str, Any] = {"weights_backbone": None} if hasattr(segmentation, name) else {}
    if name in ("googlenet", "inception_v3"):
        more["init_weights"] = False
    return _without_zeros(get_model(name, weights=None, **more))


def _without_zeros(model: torch.nn.Module) -> torch.nn.Module:
    for parameter in model.parameters():
        if not parameter.any():
            torch.nn.init.normal_(parameter, std=0.02)
    return model.eval()


def errors(name: str, opsets: Sequence[int]) -> list[tuple[int, str]]:
    """Return for each opset, from the newest on, the error or the reason why there is none."""
    model = model_of(name)
    size = {"inception_v3": 299, "crossvit_tiny_240": 240}.get(name, 224)
    size = 256 if name.startswith("mobilevit") else size
    image = torch.randn(1, 3, size, size)
    with torch.no_grad():
        result = model(image)
    wanted = [value.numpy() for value in (result.values() if isinstance(result, dict) else [result])]
    source = trace(model, (image,), input_names=["image"])
    found = []
    for opset in sorted(opsets, reverse=True):
        try:
            found.append((opset, _error(source.graph, opset, image.numpy(), wanted)))
        except CaffeforgeError as error:
            found.append((opset, " ".join(str(error).split())[:300]))
    return found


def _error(graph: Any, opset: int, image: Any, wanted: Sequence[Any]) -> str:
    backend = find_any(f"onnx_opset{opset}")
    assert isinstance(backend, OnnxBackend)
    made, calls, _ = convert(graph, backend)
    with tempfile.TemporaryDirectory() as folder:
        path = write_files(made, backend, Path(folder) / "net", None)[0]
        onnx.checker.check_model(str(path), full_check=True)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        outputs = session.run(None, {"image": image})
    worst = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(outputs, wanted, strict=True))
    return f"{'equal' if worst <= TOLERANCE else 'WRONG'}, {len(calls)} nodes, error {worst:.1e}"


def main(arguments: list[str]) -> None:
    """Print a line for each network and opset."""
    warnings.simplefilter("ignore")
    opsets = [int(a) for a in arguments if a.isdigit()]
    for name in [a for a in arguments if not a.isdigit()] or names():
        for opset, text in errors(name, opsets):
            print(f"{name} {opset}: {text}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
