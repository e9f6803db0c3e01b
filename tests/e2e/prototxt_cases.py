"""Small nets as people write them, for every layer type that PyTorch's classification networks need.

Each case is a branch of its own, so that one run of Caffe, which takes most of a second to start, does
for all of them. Random choices come from fixed seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np

from tests.e2e.vendor import Floats

Shape = Sequence[int]


@dataclass(frozen=True)
class Case:
    """A small net.

    Attributes:
        name: unique; it stands before all names of the net, so that cases can be put together.
        layers: the text, in which ``$`` stands before each name.
        inputs: shapes by name, without the ``$``.
        blobs: weights by layer, without the ``$``.
    """

    name: str
    layers: str
    inputs: Mapping[str, Shape]
    blobs: Mapping[str, Sequence[Floats]] = field(default_factory=dict, repr=False)

    @property
    def text(self) -> str:
        inputs = (
            f'layer {{ name: "${name}" type: "Input" top: "${name}" input_param {{ {dims(shape)} }} }}\n'
            for name, shape in self.inputs.items()
        )
        return "".join([*inputs, self.layers]).replace("$", f"{self.name}/")

    def feed(self) -> dict[str, Floats]:
        """Return normally distributed arrays for the inputs."""
        return {f"{self.name}/{name}": normal(self.name + name, *s) for name, s in self.inputs.items()}

    def weights(self) -> dict[str, Sequence[Floats]]:
        return {f"{self.name}/{layer}": arrays for layer, arrays in self.blobs.items()}


def normal(name: str, *shape: int) -> Floats:
    """Return normally distributed numbers that depend on the name alone."""
    return np.random.default_rng(crc32(name.encode())).standard_normal(shape).astype(np.float32)


def dims(shape: Shape) -> str:
    return f"shape {{ {' '.join(f'dim: {size}' for size in shape)} }}"


def layer(kind: str, param: str = "", bottoms: str = "x", tops: str = "y", name: str = "layer") -> str:
    """Return the text of a layer; `param` is what stands in its parameters, bottoms and tops are words."""
    ends = "".join(f' bottom: "${bottom}"' for bottom in bottoms.split())
    ends += "".join(f' top: "${top}"' for top in tops.split())
    return f'layer {{ name: "${name}" type: "{kind}"{ends} {param} }}\n'


def convolutions() -> Iterator[Case]:
    """Yield convolutions of one to three axes, with sizes given in all of Caffe's ways."""

    def case(name: str, param: str, shape: Shape, weight: Shape, bias: bool = True) -> Case:
        blobs = [normal(name + "w", *weight), *([normal(name + "b", weight[0])] if bias else [])]
        text = f"convolution_param {{ num_output: {weight[0]} {'' if bias else 'bias_term: false'} {param} }}"
        return Case(f"conv_{name}", layer("Convolution", text), {"x": shape}, {"layer": blobs})

    yield case("plain", "kernel_size: 3", (2, 3, 8, 7), (4, 3, 3, 3))
    yield case("no_bias", "kernel_size: 1", (2, 3, 5, 4), (4, 3, 1, 1), bias=False)
    yield case("h_w", "kernel_h: 2 kernel_w: 3 pad: 1 stride: 2", (1, 2, 9, 8), (3, 2, 2, 3))
    yield case("only_pad_h", "kernel_size: 3 pad_h: 1", (1, 2, 6, 6), (3, 2, 3, 3))
    yield case("repeated", "kernel_size: [3, 2] stride: [1, 2] pad: [0, 1]", (1, 2, 6, 9), (3, 2, 3, 2))
    yield case("dilated", "kernel_size: 3 dilation: [2, 1] pad: [2, 0]", (1, 2, 7, 9), (3, 2, 3, 3))
    yield case("no_meaning", "kernel_size: 3 engine: CAFFE force_nd_im2col: true", (1, 2, 6, 5), (3, 2, 3, 3))
    yield case("negative_axis", "kernel_size: 3 axis: -3", (1, 2, 6, 5), (3, 2, 3, 3))
    yield case("second_axis_is_a_batch_too", "kernel_size: 3 axis: 2 group: 2", (2, 3, 4, 6), (6, 2, 3))
    yield case("depthwise", "kernel_size: 3 group: 4", (2, 4, 6, 5), (4, 1, 3, 3))
    yield case("one_axis", "kernel_size: 3 stride: 2 pad: 1", (2, 3, 10), (4, 3, 3))
    yield case("three_axes", "kernel_size: [2, 3, 1] pad: [1, 0, 0]", (1, 2, 4, 5, 3), (3, 2, 2, 3, 1))

    random = np.random.default_rng(1)
    for index in range(16):
        group, inside, outside = (int(n) for n in random.integers(1, 4, 3))
        k, s, d = (random.integers(1, 4, 2) for _ in range(3))
        p = random.integers(0, 4, 2)
        h, w = (k - 1) * d + 1 + random.integers(0, 9, 2)
        param = f"group: {group} kernel_h: {k[0]} kernel_w: {k[1]} stride_h: {s[0]} stride_w: {s[1]} "
        param += f"pad_h: {p[0]} pad_w: {p[1]} dilation: [{d[0]}, {d[1]}]"
        weight = (group * outside, inside, *map(int, k))
        yield case(f"random_{index}", param, (2, group * inside, int(h), int(w)), weight, bias=index % 2 == 0)


def poolings() -> Iterator[Case]:
    """Yield maxima and averages of windows that fit, overhang, or are clipped."""

    def case(name: str, param: str, shape: Shape) -> Case:
        return Case(f"pool_{name}", layer("Pooling", f"pooling_param {{ {param} }}"), {"x": shape})

    for pool in ("MAX", "AVE"):
        yield case(f"{pool}_defaults", f"pool: {pool} kernel_size: 2", (1, 2, 4, 5))
        yield case(f"{pool}_global", f"pool: {pool} global_pooling: true", (2, 3, 5, 4))
        yield case(f"{pool}_h_w", f"pool: {pool} kernel_h: 2 kernel_w: 3 stride: 2", (1, 2, 7, 8))
        yield case(f"{pool}_larger_than_input", f"pool: {pool} kernel_size: 5 stride: 3", (1, 2, 4, 3))
        yield case(f"{pool}_overhang", f"pool: {pool} kernel_size: 3 stride: 2", (1, 2, 6, 8))
        yield case(f"{pool}_clipped", f"pool: {pool} kernel_size: 2 stride: 2 pad: 1", (1, 2, 5, 7))
        yield case(f"{pool}_both", f"pool: {pool} kernel_size: 3 stride: 2 pad: 1", (1, 2, 6, 8))
        clipped = f"pool: {pool} kernel_h: 3 kernel_w: 1 stride: 3 pad_h: 1 pad_w: 0"  # on both axes
        yield case(f"{pool}_clipped_by_the_other_pad", clipped, (1, 2, 8, 8))
    text = layer("Pooling", "pooling_param { kernel_size: 3 stride: 2 }", tops="y places")
    yield Case("pool_with_places", text, {"x": (1, 2, 6, 8)})
    yield case("default_is_MAX", "kernel_size: 3 stride: 2", (1, 2, 7, 7))

    random = np.random.default_rng(2)
    for index in range(40):
        k, s = random.integers(1, 6, 2), random.integers(1, 5, 2)
        s = np.minimum(s, k)  # else a window may lie outside, which is refused
        p = random.integers(0, k)
        h, w = k + random.integers(0, 9, 2)
        param = f"pool: {'MAX' if index % 2 else 'AVE'} kernel_h: {k[0]} kernel_w: {k[1]} "
        param += f"stride_h: {s[0]} stride_w: {s[1]} pad_h: {p[0]} pad_w: {p[1]}"
        yield case(f"random_{index}", param, (1, 2, int(h), int(w)))


def inner_products() -> Iterator[Case]:
    for index, (axis, shape, depth) in enumerate(
        [
            (None, (2, 3, 4, 5), 60),
            (1, (2, 7), 7),
            (2, (2, 3, 4, 5), 20),
            (-1, (2, 3, 4, 5), 5),
            (0, (2, 3), 6),
            (2, (3, 2, 6), 6),
        ]
    ):
        for transpose in (False, True):
            name = f"inner_product_{index}{'_transposed' if transpose else ''}"
            bias = index % 2 == 0
            param = f"num_output: 4 transpose: {str(transpose).lower()} bias_term: {str(bias).lower()}"
            param += "" if axis is None else f" axis: {axis}"
            weight = normal(name, *((depth, 4) if transpose else (4, depth)))
            blobs = [weight, normal(name + "b", 4)] if bias else [weight]
            text = layer("InnerProduct", f"inner_product_param {{ {param} }}")
            yield Case(name, text, {"x": shape}, {"layer": blobs})


def batch_norms() -> Iterator[Case]:
    for factor in (0.0, 1.0, 2.5):
        for shape in ((2, 3), (2, 3, 5), (2, 3, 4, 5), (1, 3, 2, 4, 3)):
            name = f"batch_norm_{factor:g}_rank_{len(shape)}"
            variance = normal(name + "v", 3) ** 2 + np.float32(0.1)
            blobs = [normal(name + "m", 3), variance, np.array([factor], np.float32)]
            yield Case(name, layer("BatchNorm"), {"x": shape}, {"layer": blobs})
    text = layer("BatchNorm", "batch_norm_param { use_global_stats: true eps: 0.25 }")
    blobs = [normal("m", 3), abs(normal("v", 3)), np.array([1], np.float32)]
    yield Case("batch_norm_eps", text, {"x": (2, 3, 4, 5)}, {"layer": blobs})
    text = layer("BatchNorm", "batch_norm_param { moving_average_fraction: 0.9 }", tops="x")
    text += layer("Scale", "scale_param { bias_term: true }", tops="x", name="scale")
    scale = [normal("s", 3), normal("b", 3)]
    yield Case("batch_norm_and_scale_in_place", text, {"x": (2, 3, 4, 5)}, {"layer": blobs, "scale": scale})


def scales_and_biases() -> Iterator[Case]:
    runs = [  # parameters, shape of the bottom, shape of the blob or second bottom
        ("", (2, 3, 4, 5), (3,)),
        ("axis: 0", (2, 3, 4, 5), (2,)),
        ("axis: 2", (2, 3, 4, 5), (4,)),
        ("axis: -1", (2, 3, 4, 5), (5,)),
        ("axis: -2 num_axes: 2", (2, 3, 4, 5), (4, 5)),
        ("axis: 0 num_axes: 3", (2, 3, 4, 5), (2, 3, 4)),
        ("axis: 1 num_axes: -1", (2, 3, 4), (3, 4)),
        ("axis: 0 num_axes: -1", (2, 3), (2, 3)),
    ]
    for kind, param in (("Scale", "scale_param"), ("Bias", "bias_param")):
        for index, (given, shape, run) in enumerate(runs):
            name = f"{kind}_{index}"
            text = layer(kind, f"{param} {{ {given} }}")
            yield Case(name, text, {"x": shape}, {"layer": [normal(name, *run)]})
            text = layer(kind, f"{param} {{ {given.split(' num')[0]} }}", bottoms="x other")
            yield Case(f"{name}_two_bottoms", text, {"x": shape, "other": run})
        text = layer(kind, f"{param} {{ axis: 2 num_axes: 0 }}")
        yield Case(f"{kind}_number", text, {"x": (2, 3, 4)}, {"layer": [normal(kind)]})
    for index, (given, shape, run) in enumerate(runs):
        name = f"Scale_with_bias_{index}"
        text = layer("Scale", f"scale_param {{ bias_term: true {given} }}")
        blobs = [normal(name, *run), normal(name + "b", *run)]
        yield Case(name, text, {"x": shape}, {"layer": blobs})
        param = f"scale_param {{ bias_term: true {given.split(' num')[0]} }}"
        text = layer("Scale", param, bottoms="x other")
        yield Case(f"{name}_two_bottoms", text, {"x": shape, "other": run}, {"layer": blobs[1:]})


def eltwises() -> Iterator[Case]:
    for index, (param, count) in enumerate(
        [
            ("", 2),
            ("operation: SUM", 3),
            ("coeff: [1, -1]", 2),
            ("operation: SUM coeff: [0.5, -2, 3]", 3),
            ("coeff: [1, 1]", 2),
            ("operation: PROD", 2),
            ("operation: PROD stable_prod_grad: false", 3),
            ("operation: PROD", 4),
            ("operation: MAX", 2),
            ("operation: MAX", 4),
        ]
    ):
        bottoms = [f"x{i}" for i in range(count)]
        text = layer("Eltwise", f"eltwise_param {{ {param} }}", bottoms=" ".join(bottoms))
        yield Case(f"eltwise_{index}", text, dict.fromkeys(bottoms, (2, 3, 4)))
    yield Case("eltwise_of_itself", layer("Eltwise", bottoms="x x"), {"x": (2, 3)})


def shapes() -> Iterator[Case]:
    """Yield layers that only move elements."""
    concats: list[tuple[str, list[Shape]]] = [
        ("", [(2, 1, 4), (2, 3, 4)]),
        ("concat_param { axis: 0 }", [(2, 3), (1, 3), (4, 3)]),
        ("concat_param { axis: -1 }", [(2, 3, 1, 2), (2, 3, 1, 5)]),
        ("concat_param { concat_dim: 2 }", [(1, 2, 3, 2), (1, 2, 1, 2)]),
        ("", [(2, 3, 4)]),
    ]
    for index, (param, sizes) in enumerate(concats):
        inputs = {f"x{i}": size for i, size in enumerate(sizes)}
        yield Case(f"concat_{index}", layer("Concat", param, bottoms=" ".join(inputs)), inputs)

    for index, (param, tops) in enumerate(
        [
            ("", 2),
            ("", 1),
            ("axis: 2", 3),
            ("axis: -1 slice_point: [1, 4]", 3),
            ("axis: 0 slice_point: 2", 2),
            ("slice_dim: 2 slice_point: [1, 2, 5]", 4),
        ]
    ):
        text = layer("Slice", f"slice_param {{ {param} }}", tops=" ".join(f"y{i}" for i in range(tops)))
        yield Case(f"slice_{index}", text, {"x": (3, 4, 6, 5)})

    for index, (wanted, param, shape) in enumerate(
        [
            ((2, -1), "", (2, 3, 4, 5)),
            ((0, -1), "", (2, 3, 4, 5)),
            ((0, 0, 20), "", (2, 3, 4, 5)),
            ((-1, 0, 4), "", (2, 3, 4)),
            ((6, 20), "", (2, 3, 4, 5)),
            ((-1,), "axis: 1", (2, 3, 4, 5)),
            ((2, 2), "axis: -3 num_axes: 1", (2, 3, 4, 5)),
            ((1,), "axis: 1 num_axes: 0", (2, 3, 4, 5)),
            ((1, 1), "axis: -1 num_axes: 0", (2, 3, 4, 5)),
            ((-1, 2), "axis: 1 num_axes: 2", (2, 3, 4, 5)),
            ((0, 2, -1), "axis: 1", (2, 3, 4, 5)),
            ((0, 10), "axis: 2", (2, 3, 2, 2, 5)),
            ((3, 0), "axis: 1 num_axes: 1", (2, 3, 1, 5)),  # the 0 takes an axis that is kept as well
            ((0, -1, 1), "", (6, 4)),
        ]
    ):
        text = layer("Reshape", f"reshape_param {{ {dims(wanted)} {param} }}")
        yield Case(f"reshape_{index}", text, {"x": shape})

    for axis, end in ((1, -1), (0, -1), (2, -1), (1, 2), (-3, -2), (0, 1), (3, 3)):
        text = layer("Flatten", f"flatten_param {{ axis: {axis} end_axis: {end} }}")
        yield Case(f"flatten_{axis}_{end}", text, {"x": (2, 3, 4, 5)})
    yield Case("flatten", layer("Flatten"), {"x": (2, 3, 4, 5)})


def others() -> Iterator[Case]:
    for axis in (0, 1, 2, -1):
        text = layer("Softmax", f"softmax_param {{ axis: {axis} engine: CAFFE }}")
        yield Case(f"softmax_{axis}", text, {"x": (2, 3, 4, 5)})
    yield Case("softmax", layer("Softmax", tops="x"), {"x": (2, 6)})
    for slope in (0, 0.1, 1.5, -0.5):
        text = layer("ReLU", f"relu_param {{ negative_slope: {slope} engine: CAFFE }}")
        yield Case(f"relu_{slope}", text, {"x": (2, 3, 4)})
    text = layer("ReLU", tops="x")
    text += layer("Dropout", "dropout_param { dropout_ratio: 0.9 }", "x", "x", "drop")
    text += layer("InnerProduct", "inner_product_param { num_output: 3 }", "x", "y", "fc")
    text += layer("ReLU", "relu_param { negative_slope: 0.2 }", "y", "y", "relu")
    blobs = [normal("fc", 3, 12), normal("fc b", 3)]
    yield Case("in_place", text, {"x": (2, 3, 4)}, {"fc": blobs})
    yield Case("dropout", layer("Dropout"), {"x": (2, 3)})
    yield Case("split", layer("Split", tops="a b c"), {"x": (2, 3)})
    yield Case("split_into_one", layer("Split"), {"x": (2, 3)})
    text = layer("Slice", tops="a b c") + layer("Silence", "", "a c", "", "silence")
    yield Case("silence", text, {"x": (2, 3)})
    param = 'param { name: "shared" } inner_product_param { num_output: 3 bias_term: false }'
    text = layer("InnerProduct", param) + layer("InnerProduct", param, "y", "z", "b")
    weights = normal("shared", 3, 3)
    yield Case("shared_weights", text, {"x": (2, 3)}, {"layer": [weights], "b": [weights]})


CASES = tuple(
    case
    for cases in (
        convolutions,
        poolings,
        inner_products,
        batch_norms,
        scales_and_biases,
        eltwises,
        shapes,
        others,
    )
    for case in cases()
)
