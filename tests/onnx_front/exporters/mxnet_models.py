"""Models of MXNet 1.9, written by mx2onnx; it needs mxnet 1.9 and onnx, with a NumPy before 1.24."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tests.onnx_front.exporters.fixture import write

mx: Any = import_module("mxnet")
nn: Any = mx.gluon.nn

OPSET = 12  # in 13, the last that mx2onnx knows, it fails on labels


def sequence(*layers: Any) -> Any:
    network = nn.HybridSequential()
    network.add(*layers)
    return network


def convolutions() -> Any:
    return sequence(
        nn.Conv2D(4, 3, strides=2, padding=1, use_bias=False),
        nn.BatchNorm(scale=False),
        nn.Activation("relu"),
        nn.MaxPool2D(3, 2, ceil_mode=True),
        nn.Conv2D(4, 3, padding=1, groups=2),
        nn.LeakyReLU(0.2),
        nn.AvgPool2D(2, 1, padding=1, count_include_pad=False),
        nn.Conv2DTranspose(6, 3, 2, padding=1, output_padding=1),
        nn.PReLU(),
        nn.GlobalAvgPool2D(),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Dense(5),
    )


def dense() -> Any:
    return sequence(nn.Dense(6, activation="tanh"), nn.LayerNorm(), nn.Dense(4, activation="sigmoid"))


def symbol_net() -> Any:
    """The older interface: a loss layer with a label, sums, slices and a concatenation."""
    data = mx.sym.Variable("data")
    y = mx.sym.Convolution(data, kernel=(3, 3), num_filter=4, pad=(1, 1), name="conv")
    a, b = (mx.sym.slice_axis(y, axis=1, begin=i, end=i + 2) for i in (0, 2))
    y = mx.sym.concat(mx.sym.elemwise_add(a, b), mx.sym.broadcast_mul(a, b), dim=1)
    y = mx.sym.UpSampling(mx.sym.clip(y, 0, 6), scale=2, sample_type="nearest")
    y = mx.sym.FullyConnected(mx.sym.mean(y, axis=(2, 3)), num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(y, name="softmax")


MODELS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "convolutions": (convolutions, (1, 3, 13, 15)),
    "dense": (dense, (2, 7)),
}


def main() -> None:
    """Write every model."""
    mx.random.seed(0)
    np.random.seed(0)
    for name, (make, shape) in MODELS.items():
        network = make()
        network.initialize(mx.init.Uniform(0.5))
        network.hybridize()
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        y = network(mx.nd.array(x)).asnumpy()
        with tempfile.TemporaryDirectory() as folder:
            stem = str(Path(folder, "net"))
            network.export(stem)
            model = exported(f"{stem}-symbol.json", f"{stem}-0000.params", shape)
        write("mx2onnx", name, model, [x], [y])
    with_label()


def with_label() -> None:
    """Write the model of symbols."""
    shape = (1, 3, 6, 5)
    net = symbol_net()
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    bound = net.simple_bind(mx.cpu(), data=shape)
    generator = np.random.default_rng(1)
    names = [name for name in bound.arg_dict if name not in ("data", "softmax_label")]
    for name in names:
        bound.arg_dict[name][:] = generator.uniform(-0.5, 0.5, bound.arg_dict[name].shape)
    y = bound.forward(is_train=False, data=x)[0].asnumpy()
    weights = {f"arg:{name}": bound.arg_dict[name] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        symbol, parameters = str(Path(folder, "net-symbol.json")), str(Path(folder, "net-0000.params"))
        net.save(symbol)
        mx.nd.save(parameters, weights)
        model = exported(symbol, parameters, shape)
    write("mx2onnx", "labelled", model, [x], [y])


def exported(symbol: str, parameters: str, shape: tuple[int, ...]) -> bytes:
    """Return the file that mx2onnx writes; it asks the installed onnx which opset to write."""
    onnx: Any = import_module("onnx")
    onnx.defs.onnx_opset_version = lambda: OPSET
    import_module("onnx.checker").DEFAULT_CONTEXT.opset_imports = {"": OPSET}
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder, "net.onnx"))
        mx.onnx.export_model(symbol, parameters, [shape], [np.float32], out)
        return Path(out).read_bytes()


if __name__ == "__main__":
    main()
