"""Layers that move elements or pick them: our reader against real Caffe, many settings a type."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from caffeforge.generated.bvlc import BACKEND, layers
from caffeforge.runtime.caffe_files import write_files
from caffeforge.runtime.errors import ReadError
from caffeforge.runtime.loaded import load
from tests.e2e.layer_cases import LayerCase, Random, check, net_of
from tests.real_caffe.witness import Witness

COUNT = 30


def shape_of(r: Random, axes: int) -> tuple[int, ...]:
    """Return sizes, the batch 1 or 3."""
    return (r.pick((1, 3)), *(r.size(3, 7) for _ in range(axes - 1)))


def argmax() -> list[LayerCase]:
    r = Random(1)
    made = []
    for index in range(2 * COUNT):
        shape = shape_of(r, r.size(2, 4))
        axis = r.pick((None, 1, -1, len(shape) - 1))
        size = int(np.prod(shape[1:])) if axis is None else shape[axis]
        param = layers.ArgMax(
            axis=axis, top_k=r.pick((None, 1, 2, size)), out_max_val=r.pick((None, False, True))
        )
        x = r.whole(4, *shape) if index % 2 else r.normal(*shape)  # whole numbers: many are equal
        made.append(LayerCase(param, [x], varies=False))
    return made


def batch_reindex() -> list[LayerCase]:
    r = Random(2)
    made = []
    for _ in range(COUNT):
        x = r.normal(r.size(2, 5), *(r.size(1, 5) for _ in range(r.size(0, 3))))
        made.append(LayerCase(layers.BatchReindex(), [x, r.whole(x.shape[0], r.size(2, 9))], varies=False))
    return made


def concat() -> list[LayerCase]:
    r = Random(3)
    made = []
    for _ in range(COUNT):
        shape = shape_of(r, r.size(2, 5))
        axis = r.size(-len(shape), len(shape) - 1)
        bottoms = []
        for _ in range(r.size(1, 4)):
            own = list(shape)
            own[axis] = r.size(1, 4)
            bottoms.append(r.normal(*own))
        made.append(LayerCase(layers.Concat(axis=axis), bottoms))
    made.append(LayerCase(layers.Concat(concat_dim=2), [r.normal(1, 2, 3), r.normal(1, 2, 4)]))
    return made


def crop() -> list[LayerCase]:
    r = Random(4)
    made = []
    for _ in range(COUNT):
        shape = shape_of(r, r.size(3, 4))
        axis = r.pick((None, 1, 2, -1))
        start = 2 if axis is None else axis % len(shape)
        wanted = [r.size(1, 2) if at < start else r.size(1, size) for at, size in enumerate(shape)]
        room = [size - new for size, new in zip(shape, wanted, strict=True)][start:]
        offset = r.pick(((), (r.size(0, min(room)),), tuple(r.size(0, gap) for gap in room)))
        made.append(
            LayerCase(
                layers.Crop(axis=axis, offset=offset), [r.normal(*shape), r.normal(*wanted)], varies=False
            )
        )
    return made


def dummy_data() -> list[LayerCase]:
    r = Random(5)
    made = []
    for index in range(COUNT):
        tops = r.size(1, 3)
        fillers = tuple(
            layers.FillerParameter(type=r.pick((None, "constant")), value=r.pick((None, 0.7, -2.0)))
            for _ in range(r.pick((0, 1, tops)))
        )
        count = r.pick((1, tops))
        if index % 3:
            shape = tuple(layers.BlobShape(dim=shape_of(r, r.size(1, 4))) for _ in range(count))
            param = layers.DummyData(data_filler=fillers, shape=shape)
        else:
            sizes = [tuple(r.size(1, 4) for _ in range(r.pick((1, tops)))) for _ in range(4)]
            num, channels, height, width = sizes
            param = layers.DummyData(
                data_filler=fillers, num=num, channels=channels, height=height, width=width
            )
        made.append(LayerCase(param, tops=tops, varies=False))
    return made


def embed() -> list[LayerCase]:
    r = Random(6)
    made = []
    for _ in range(COUNT):
        rows, width, bias = r.size(2, 9), r.size(2, 5), r.pick((None, False))
        indices = r.whole(rows, *shape_of(r, r.size(1, 3)))
        blobs = [r.normal(rows, width)] + ([r.normal(width)] if bias is None else [])
        param = layers.Embed(num_output=width, input_dim=rows, bias_term=bias)
        made.append(LayerCase(param, [indices], blobs))
    return made


def flatten() -> list[LayerCase]:
    r = Random(7)
    made = []
    for _ in range(COUNT):
        shape = shape_of(r, r.size(2, 5))
        first = r.size(0, len(shape) - 1)
        last = r.size(first, len(shape) - 1)
        axis = r.pick((first, first - len(shape)))
        end_axis = r.pick((last, last - len(shape)))
        made.append(LayerCase(layers.Flatten(axis=axis, end_axis=end_axis), [r.normal(*shape)]))
    return made


def parameter() -> list[LayerCase]:
    r = Random(8)
    made = []
    for _ in range(COUNT):
        blob = r.normal(*shape_of(r, r.size(2, 4)))
        made.append(LayerCase(layers.Parameter(shape=layers.BlobShape(dim=blob.shape)), [], [blob]))
    return made


def reshape() -> list[LayerCase]:
    r = Random(9)
    made = []
    for _ in range(COUNT):
        n, a, b, c = shape_of(r, 4)
        dim, axis, num_axes = r.pick(
            (
                ((0, -1), None, None),
                ((n * a, b, c), None, None),
                ((0, 0, -1, 1), None, None),
                ((-1, 0), 2, None),
                ((c, b), 2, 2),
                ((1,), 1, 0),
                ((1, 1), -1, 0),
                ((-1,), 1, 2),
                ((0, b * c, 1), -4, -1),
                ((b, a), -4, 2),
            )
        )
        param = layers.Reshape(shape=layers.BlobShape(dim=dim), axis=axis, num_axes=num_axes)
        made.append(LayerCase(param, [r.normal(n, a, b, c)]))
    return made


def slice_() -> list[LayerCase]:
    r = Random(10)
    made = []
    for _ in range(COUNT):
        shape = list(shape_of(r, r.size(2, 4)))
        axis = r.size(-len(shape), len(shape) - 1)
        tops = r.size(1, 4)
        if r.pick((True, False)):
            shape[axis] = tops * r.size(1, 3)
            points: tuple[int, ...] = ()
        else:
            shape[axis] = tops + r.size(0, 4)
            points = tuple(sorted(r.generator.permutation(shape[axis] - 1)[: tops - 1] + 1))
        param = layers.Slice(axis=axis, slice_point=tuple(map(int, points)))
        made.append(LayerCase(param, [r.normal(*shape)], tops=tops, varies=False))
    made.append(LayerCase(layers.Slice(slice_dim=2), [r.normal(1, 2, 4)], tops=2))
    return made


def split() -> list[LayerCase]:
    r = Random(11)
    return [
        LayerCase(layers.Split(), [r.normal(*shape_of(r, r.size(2, 4)))], tops=r.size(1, 4))
        for _ in range(COUNT)
    ]


def tile() -> list[LayerCase]:
    r = Random(12)
    made = []
    for _ in range(COUNT):
        shape = shape_of(r, r.size(2, 4))
        axis = r.pick((None, *range(-len(shape), len(shape))))
        made.append(LayerCase(layers.Tile(axis=axis, tiles=r.size(1, 4)), [r.normal(*shape)]))
    return made


CASES: dict[str, Callable[[], list[LayerCase]]] = {
    "ArgMax": argmax,
    "BatchReindex": batch_reindex,
    "Concat": concat,
    "Crop": crop,
    "DummyData": dummy_data,
    "Embed": embed,
    "Flatten": flatten,
    "Parameter": parameter,
    "Reshape": reshape,
    "Slice": slice_,
    "Split": split,
    "Tile": tile,
}


@pytest.mark.parametrize("kind", CASES)
def test_layer_computes_what_caffe_computes(kind: str, caffe: Witness, tmp_path: Path) -> None:
    check(CASES[kind](), caffe, tmp_path)


def test_second_caffe_agrees(kendryte: Witness, tmp_path: Path) -> None:
    check([case for cases in CASES.values() for case in cases()], kendryte, tmp_path)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (
            LayerCase(
                layers.DummyData(
                    data_filler=(layers.FillerParameter(type="gaussian"),),
                    shape=(layers.BlobShape(dim=(2, 3)),),
                )
            ),
            "gaussian draws numbers at random",
        ),
        (LayerCase(layers.ArgMax(axis=1, top_k=4), [np.ones((2, 3), np.float32)]), "top_k is more"),
        (
            LayerCase(layers.BatchReindex(), [np.ones((2, 3), np.float32), np.ones((2, 1), np.float32)]),
            "a list of indices",
        ),
        (
            LayerCase(layers.Crop(axis=1, offset=(2,)), [np.ones((1, 3, 4), np.float32)] * 2),
            "reaches beyond the first bottom",
        ),
        (LayerCase(layers.Tile(), [np.ones((2, 3), np.float32)]), "tiles must be given"),
        (LayerCase(layers.Filter(), [np.ones((2, 3), np.float32)] * 2), "Filter"),
    ],
)
def test_what_cannot_be_computed_is_refused(case: LayerCase, reason: str, tmp_path: Path) -> None:
    net, _ = net_of([case])
    prototxt, caffemodel, _ = write_files(net, BACKEND, tmp_path / "net", "{}\n")
    with pytest.raises(ReadError, match=reason):
        load(prototxt, caffemodel, BACKEND)
