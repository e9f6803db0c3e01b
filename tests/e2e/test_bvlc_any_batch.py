"""Nets written for one item run with three: no rule writes the batch into a layer."""

from pathlib import Path

import numpy as np

from caffeforge.runtime.executor import Executor
from tests.e2e.layer_cases import Floats, Random, difference, worst
from tests.e2e.op_cases import OpCase, renamed, written
from tests.real_caffe.witness import Witness

IMAGE = "(x: float32[N, 6, 4, 5]): "
ROWS = "(x: float32[N, 6, 4]): "

TEXTS = [
    *(
        f"{IMAGE}y = {op}"
        for op in (
            "Transpose(x, perm=(0, 2, 3, 1))",
            "Transpose(x, perm=(0, 3, 2, 1))",
            "Transpose(x, perm=(0, 1, 3, 2))",
            "Slice(x, starts=(1,), ends=(3,), axes=(1,))",
            "Slice(x, starts=(-1,), ends=(-100,), axes=(2,), steps=(-1,))",
            "Slice(x, starts=(0, 0), ends=(9, 9), axes=(2, 3), steps=(2, 2))",
            "Pad(x, pads=(0, 0, 1, 2, 0, 0, 2, 1))",
            "Pad(x, pads=(0, 0, 1, 2, 0, 0, 2, 1), mode='reflect')",
            "Pad(x, pads=(0, 1, 0, 0, 0, 2, 0, 0), constant_value=2.0)",
            "ReduceMean(x, axes=(1,))",
            "ReduceMean(x, axes=(2, 3), keepdims=0)",
            "ReduceMax(x, axes=(1, 3))",
            "ReduceSum(x, axes=(1, 2, 3), keepdims=0)",
            "ArgMax(x, axis=1)",
            "ArgMax(x, axis=-1, keepdims=0)",
            "Softmax(x, axis=1)",
            "LogSoftmax(x, axis=1)",
            "Flatten(x)",
            "Reshape(x, shape=(0, -1))",
            "Unsqueeze(x, axes=(1,))",
            "GlobalAveragePool(x)",
            "MaxPool(x, kernel_shape=(2, 2), dilations=(2, 2))",
            "AveragePool(x, kernel_shape=(3, 3), pads=(1, 1, 1, 1))",
            "Gelu(x)",
            "CumSum(x, axis=1)",
            "LpNormalization(x, axis=1)",
            "Tile(x, repeats=(1, 2, 1, 1))",
            "Resize(x, None, sizes=(N, 6, 7, 9), mode='linear')",
            "Resize(x, None, scales=(1.0, 1.0, 2.0, 2.0))",
            "SpaceToDepth(x, blocksize=1)",
            "Reshape(x, shape=(N, 3, 2, 20))",
        )
    ),
    "(x: float32[N, 8, 4, 6]): y = DepthToSpace(x, blocksize=2, mode='CRD')",
    "(x: float32[N, 8, 4, 6]): y = DepthToSpace(x, blocksize=2)",
    "(x: float32[N, 8, 4, 6]): y = SpaceToDepth(x, blocksize=2)",
    f"{IMAGE}a = GlobalAveragePool(x); b = Sigmoid(a); y = Mul(x, b)",
    f"{IMAGE}a = ReduceMean(x, axes=(1,)); y = Mul(x, a)",
    f"{IMAGE}a = ReduceMean(x, axes=(2,)); y = Add(x, a)",
    f"{IMAGE}a = ReduceMean(x, axes=(3,)); y = Sub(x, a)",
    f"{ROWS}a = Transpose(x, perm=(0, 2, 1)); y = MatMul(x, a)",
    f"{ROWS}y = MaxPool(x, kernel_shape=(3,))",
    # Windows of two by two as items, as in Swin: apart, and together again.
    "(x: float32[N, 4, 6, 5]): a = Reshape(x, shape=(N, 2, 2, 3, 2, 5)); "
    "b = Transpose(a, perm=(0, 1, 3, 2, 4, 5)); c = Reshape(b, shape=(6*N, 4, 5)); "
    "d = Softmax(c, axis=1); e = Reshape(d, shape=(N, 2, 3, 2, 2, 5)); "
    "f = Transpose(e, perm=(0, 1, 3, 2, 4, 5)); y = Reshape(f, shape=(N, 4, 6, 5))",
    "(x: float32[N, 2, 5, 6, 7]): y = MaxPool(x, kernel_shape=(2, 2, 2))",
]

# With constants, which are random.
WITH_WEIGHTS: list[tuple[str, list[tuple[int, ...]]]] = [
    (
        f"{IMAGE[:-3]}, *, s: float32[6], b: float32[6]): y = GroupNormalization(x, s, b, num_groups=3)",
        [(6,), (6,)],
    ),
    (f"{IMAGE[:-3]}, *, s: float32[6], b: float32[6]): y = InstanceNormalization(x, s, b)", [(6,), (6,)]),
    (f"{IMAGE[:-3]}, *, s: float32[5]): y = LayerNormalization(x, s)", [(5,)]),
    (f"{IMAGE[:-3]}, *, c: float32[6, 4, 5]): y = Add(x, c)", [(6, 4, 5)]),
    (f"{ROWS[:-3]}, *, w: float32[4, 5]): y = MatMul(x, w)", [(4, 5)]),
    (f"{ROWS[:-3]}, *, w: float32[5, 6]): y = MatMul(w, x)", [(5, 6)]),
    (f"{ROWS[:-3]}, *, i: int64[3] = (4, 0, 2)): y = Gather(x, i, axis=1)", []),
    (f"{ROWS[:-3]}, *, i: int64[] = 2): y = Gather(x, i, axis=1)", []),
]


def case(text: str, batch: int, weights: list[Floats]) -> OpCase:
    for whole, number in (("6*N", 6 * batch), ("N", batch)):
        text = text.replace(f"[{whole},", f"[{number},").replace(f"({whole},", f"({number},")
    return OpCase(text, weights=weights)


def test_nets_take_another_batch(caffe: Witness, tmp_path: Path) -> None:
    r = Random(1)
    every = [(text, [r.normal(*shape) for shape in shapes]) for text, shapes in WITH_WEIGHTS]
    every += [(text, []) for text in TEXTS]
    graphs = [renamed(case(text, 1, weights).graph(), f"c{i}") for i, (text, weights) in enumerate(every)]
    larger = [renamed(case(text, 3, weights).graph(), f"c{i}") for i, (text, weights) in enumerate(every)]
    inputs = {graph.inputs[0].name: r.normal(*graph.inputs[0].shape) for graph in larger}
    _, prototxt, caffemodel = written(graphs, tmp_path)
    found = caffe.run(prototxt, caffemodel, inputs, [graph.outputs[0].name for graph in graphs])
    errors = {}
    for (text, _), graph in zip(every, larger, strict=True):
        name, x = graph.outputs[0].name, graph.inputs[0].name
        expected = Executor(graph, threads=1).run({x: inputs[x]})[name]
        errors[text] = difference(found[name], expected.astype(np.float64))
    worst(errors)


def test_a_constant_that_is_joined_is_repeated_for_each_item(caffe: Witness, tmp_path: Path) -> None:
    r = Random(2)
    token, x = r.normal(1, 2, 4), r.normal(3, 6, 4)
    text = "(x: float32[1, 6, 4], *, c: float32[1, 2, 4]): y = Concat(c, x, axis=1)"
    _, prototxt, caffemodel = written([OpCase(text, weights=[token]).graph()], tmp_path)
    expected = np.concatenate([np.repeat(token, 3, axis=0), x], axis=1)
    np.testing.assert_array_equal(caffe.run(prototxt, caffemodel, {"x": x})["y"], expected)
