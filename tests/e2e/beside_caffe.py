"""All backends in one process beside a pycaffe and OpenCV, as test_beside_caffe.py runs it.

Its arguments are a folder with a package ``caffe`` like pycaffe's, whose messages are in protobuf's default
pool; a folder for files; whether ``caffe`` is imported first or last; and folders of further backends.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn


def small() -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 5)
    )
    return model.eval(), torch.randn(1, 3, 8, 8)


def foreign(caffe_folder: Path) -> Any:
    """Import the other program's caffe; its messages stand in the default pool from now on."""
    sys.path.insert(0, str(caffe_folder))
    return importlib.import_module("caffe.proto.caffe_pb2")


def own(stem: Path, further: list[Path]) -> list[str]:
    """Write and read a network by each backend; return the names of those that did."""
    from caffeforge.runtime import backends
    from caffeforge.runtime.export import export
    from caffeforge.runtime.loaded import load

    model, image = small()
    with torch.no_grad():
        expected = model(image).numpy()
    program = torch.export.export(model, (image,))
    done = []
    for found in [*map(backends.find, backends.names()), *map(backends.find, further)]:
        export(found, program, image, stem.with_name(found.name), input_names=["input"], verify=False)
        prototxt, caffemodel = (stem.with_name(found.name + end) for end in (".prototxt", ".caffemodel"))
        (result,) = load(prototxt, caffemodel, found).run({"input": image.numpy()}).values()
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
        done.append(found.name)
    return done


def main(caffe_folder: str, work: str, order: str, *further: str) -> None:
    caffe_pb2 = foreign(Path(caffe_folder)) if order == "first" else None
    done = own(Path(work, "net"), [Path(folder) for folder in further])
    caffe_pb2 = caffe_pb2 or foreign(Path(caffe_folder))
    prototxt, caffemodel = (Path(work, f"bvlc{suffix}") for suffix in (".prototxt", ".caffemodel"))
    net = caffe_pb2.NetParameter.FromString(
        caffemodel.read_bytes()
    )  # the foreign caffe reads what bvlc wrote
    assert [layer.type for layer in net.layer].count("Convolution") == 1
    try:
        cv2 = importlib.import_module("cv2")
    except ImportError:
        cv2 = None
    if cv2 is not None:
        read = cv2.dnn.readNetFromCaffe(str(prototxt), str(caffemodel))
        model, image = small()
        read.setInput(image.numpy())
        np.testing.assert_allclose(read.forward(), model(image).detach().numpy(), rtol=1e-4, atol=1e-5)
    print(len(done), "backends beside caffe", "and OpenCV" if cv2 is not None else "without OpenCV")


if __name__ == "__main__":
    main(*sys.argv[1:])
