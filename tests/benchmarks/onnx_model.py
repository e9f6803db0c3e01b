"""ONNX models that are measured: 200 MB of weights in each form that files have, and 3 GB beside a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FORMS = ("200 MB raw", "200 MB typed", "200 MB external", "3 GB external")

_CHANNELS = 512
_BYTES = 4 * _CHANNELS * _CHANNELS * 9  # of one convolution's weights


def path(form: str, folder: Path) -> Path:
    """Return where the model of a form lies."""
    return folder / f"{form.replace(' ', '-')}.onnx"


def write(form: str, folder: Path) -> None:
    """Write a chain of convolutions. External data is a sparse file: its zeros take no room on the disk."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper, save

    size, _, kind = form.rpartition(" ")
    file = path(form, folder)
    layers = (3 * 10**9 if size == "3 GB" else 200 * 10**6) // _BYTES
    shape = (_CHANNELS, _CHANNELS, 3, 3)
    generator = np.random.default_rng(0)
    nodes, weights = [], []
    for layer in range(layers):
        name = f"w{layer}"
        nodes.append(helper.make_node("Conv", [f"x{layer}", name], [f"x{layer + 1}"], pads=[1] * 4))
        if kind == "external":
            weights.append(_outside(name, shape, layer * _BYTES, f"{file.stem}.data"))
        else:
            array = generator.standard_normal(shape).astype(np.float32)
            typed = helper.make_tensor(name, TensorProto.FLOAT, shape, array.reshape(-1))
            weights.append(numpy_helper.from_array(array, name) if kind == "raw" else typed)
    ends = [(n, (1, _CHANNELS, 7, 7)) for n in ("x0", f"x{layers}")]
    inputs, outputs = ([helper.make_tensor_value_info(n, TensorProto.FLOAT, s)] for n, s in ends)
    graph = helper.make_graph(nodes, "net", inputs, outputs, weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    if kind == "external":
        with open(folder / f"{file.stem}.data", "wb") as data:
            data.truncate(layers * _BYTES)


def _outside(name: str, shape: tuple[int, ...], offset: int, location: str) -> Any:
    from onnx import TensorProto

    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": offset, "length": _BYTES}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, str(value)
    return tensor
