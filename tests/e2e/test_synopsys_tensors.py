"""Layers of Synopsys' Caffe that came from TensorFlow's operators, against NumPy, PyTorch and plain loops.

No program here has these layers. What they compute is said by synopsys-caffe's sources, which the rules in
schemas/synopsys/mapping.yaml name; here it is said once more, independently of our rules.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch.nn import functional

from caffeforge.runtime import CaffeforgeError
from tests.e2e.layer_cases import Random
from tests.e2e.synopsys_layers import Case, Floats, check, computed

RANDOM = Random(5)
X = RANDOM.normal(3, 4, 2)
TABLES = [RANDOM.normal(4, 3), RANDOM.normal(4, 3), RANDOM.normal(3, 3)]
SPARSE = np.where(RANDOM.normal(2, 3, 4) > 0, RANDOM.normal(2, 3, 4), 0).astype(np.float32)
VOLUME = RANDOM.normal(2, 3, 5, 6, 7)
IMAGE = RANDOM.normal(2, 4, 6, 7)
LEVELS = np.array([[3, 2, 5, 2, 4, 3]], np.float32)
HEAD = RANDOM.normal(2, 14, 3, 4)
NONE = "max_norm: 9999999999"
LOOKED = 'type: "EmbeddingLookup" embedding_lookup_param { ids: %s ids_shape: 1 max_norm: %s }'


def looked_up(ids: list[int], *, dealt: bool, most: float = np.inf) -> Floats:
    """Return tf.nn.embedding_lookup's rows of TABLES: id after id, or in blocks, the first ones longer."""
    rows = sum(len(table) for table in TABLES)
    found = []
    for id in ids:
        if dealt:
            row = TABLES[id % 3][id // 3]
        else:
            sizes = [rows // 3 + (index < rows % 3) for index in range(3)]
            table = next(k for k in range(3) if id < sum(sizes[: k + 1]))
            row = TABLES[table][id - sum(sizes[:table])]
        found.append(row * min(1, most / np.linalg.norm(row)))
    return np.array(found, np.float32)


def to_space(x: Floats, block: list[int], crops: list[int]) -> Floats:
    """Return tf.batch_to_space, element by element."""
    batch = len(x) // int(np.prod(block))
    out = np.empty((batch, x.shape[1] * block[0], x.shape[2] * block[1], *x.shape[3:]), np.float32)
    for n, row, column in np.ndindex(out.shape[:3]):
        part = (row % block[0]) * block[1] + column % block[1]
        out[n, row, column] = x[part * batch + n, row // block[0], column // block[1]]
    cut: Floats = out[:, crops[0] : out.shape[1] - crops[1], crops[2] : out.shape[2] - crops[3]]
    return cut


def boxes(x: Floats, anchors: list[tuple[int, int]], image: tuple[int, int]) -> Floats:
    """Return YOLO's boxes and scores, (N, anchors * rows * columns, 5 + classes), cell by cell."""
    images, channels, rows, columns = x.shape
    size = channels // len(anchors)
    out = np.empty((images, len(anchors), rows, columns, size), np.float64)
    for n, a, i, j in np.ndindex(images, len(anchors), rows, columns):
        of = x[n, a * size : (a + 1) * size, i, j].astype(np.float64)
        score = 1 / (1 + np.exp(-of))
        down, right = image[0] // rows, image[1] // columns
        out[n, a, i, j] = score
        out[n, a, i, j, :4] = [
            (score[0] + j) * right, (score[1] + i) * down,
            np.exp(of[2]) * anchors[a][0], np.exp(of[3]) * anchors[a][1],
        ]  # fmt: skip
    return out.reshape(images, -1, size).astype(np.float32)


def hot(x: Floats, depth: int, axis: int) -> Floats:
    out = np.stack([(np.trunc(x) == k) & (x >= 0) for k in range(depth)], axis)
    return np.where(out, 2, -1).astype(np.float32)


def pooled(x: Floats, kernel: tuple[int, int, int], stride: tuple[int, int, int], pads: list[int]) -> Floats:
    """Return PyTorch's maxima of windows after padding: width, height, depth, each before and behind."""
    lowest = functional.pad(torch.from_numpy(x), pads, value=-np.inf)
    return np.asarray(functional.max_pool3d(lowest, kernel, stride).numpy())


def squeezed(offsets: bool) -> Case:
    weights, mask = RANDOM.normal(6, 2, 3, 3), (RANDOM.normal(6, 2, 3, 3) > 0).astype(np.float32)
    bias, few = RANDOM.normal(6), np.array([1, 0, 1, 1, 0, 1], np.float32)
    state = np.zeros((1, 1, 1, 2), np.float32)
    y = functional.conv2d(
        functional.pad(torch.from_numpy(IMAGE), (1, 0, 2, 1)),
        torch.from_numpy(weights * mask),
        torch.from_numpy(bias * few) if offsets else None,
        stride=(2, 1),
        groups=2,
    )
    text = "num_output: 6 kernel_size: 3 stride_h: 2 stride_w: 1 group: 2 pad_l: 1 pad_t: 2 pad_b: 1"
    blobs = [weights, bias, mask, few, state] if offsets else [weights, mask, state]
    text += "" if offsets else " bias_term: false"
    return Case("SqueezeConvolution", text, [IMAGE], [y.numpy()], blobs)


def multiplied() -> Case:
    weights, mask = RANDOM.normal(5, 8), (RANDOM.normal(5, 8) > 0).astype(np.float32)
    bias, few = RANDOM.normal(5), np.array([1, 0, 1, 1, 0], np.float32)
    y = X.reshape(3, 8) @ (weights * mask).T + bias * few
    blobs = [weights, bias, mask, few, np.zeros((1, 1, 1, 2), np.float32)]
    return Case("SqueezeInnerProduct", "num_output: 5", [X], [y], blobs)


def xlu(x: npt.NDArray[np.floating], slope: float, least: float, most: float) -> npt.NDArray[np.floating]:
    with np.errstate(invalid="ignore"):
        bent = np.maximum(x, 0) + slope * np.minimum(x, 0)
    return np.maximum(np.minimum(np.where(np.isnan(bent), 0, bent), most), least)


MEANS = np.array([1.5, 2.5, 1.5, 2.5], np.float32)[:, None, None]
INDEX = np.array([[0, 3], [2, 1]], np.float32)
NEWS = RANDOM.normal(2, 2)
SCATTERED = X.copy()
SCATTERED[[0, 2], [3, 1]] = NEWS
REVERSED = np.stack([np.concatenate([x[:n][::-1], x[n:]]) for x, n in zip(X, (2, 4, 1), strict=True)])
WIDE = np.array([-3, -0.5, 0, 0.5, 2, 7, np.inf, -np.inf], np.float32)
FACTORS = np.array([[2.0], [0.5]]) / np.sqrt(4.25)

CASES = [
    Case("Gather", "indices: [3, 0, 1, 1] shape: [2, 2] axis: 1", [X], [X[:, [[3, 0], [1, 1]]]]),
    Case("Gather", "indices: 1 shape: 0 axis: -1", [X], [X[..., 1]]),
    Case("Gather", "indices: [2] shape: [1]", [X], [X[2:]]),
    Case("GatherND", "indices: [2, 0, 1, 3] indices_shape: [2, 2]", [X], [X[[2, 1], [0, 3]]]),
    Case("GatherND", "indices: [2, 0] indices_shape: [1, 2, 1]", [X], [X[[[2, 0]]]]),
    Case(
        "EmbeddingLookup",
        f"ids: [0, 7, 4, 3] ids_shape: [2, 2] {NONE}",
        TABLES,
        [looked_up([0, 7, 4, 3], dealt=True).reshape(2, 2, 3)],
    ),
    Case(
        "EmbeddingLookup",
        'ids: [0, 10, 4, 3] ids_shape: 4 partition_strategy: "div" max_norm: 1.2',
        TABLES,
        [looked_up([0, 10, 4, 3], dealt=False, most=1.2)],
    ),
    Case(
        "EmbeddingLookupSparse",
        "ids_indices: [0, 0, 0, 1, 2, 0] "
        f"ids_values: [1, 3, 0] ids_shape: [3, 2] weight_values: [2, 0.5, 3] {NONE}",
        TABLES[:1],
        [np.stack([(TABLES[0][[1, 3]] * FACTORS).sum(0), np.zeros(3), TABLES[0][0]])],
    ),
    Case(
        "EmbeddingLookupSparse",
        "ids_indices: [0, 0, 0, 1] ids_values: "
        '[1, 3] weight_values: 9999999999 combiner: "mean" max_norm: 0.5',
        TABLES[:1],
        [sum(0.5 * row * min(1, 0.5 / np.linalg.norm(row)) for row in TABLES[0][[1, 3]])[None]],
    ),
    Case("TileND", "multiples: [2, 3]", [X], [np.tile(X, (2, 3, 1))]),
    Case("BroadcastTo", "shape: [2, 3, 4, 2]", [X], [np.broadcast_to(X, (2, 3, 4, 2))]),
    Case("Range", "start: 3 limit: -1 delta: -0.75", [], [np.arange(3, -1, -0.75)]),
    Case("Range", "limit: 4", [], [np.arange(4.0)]),
    Case("CountNonzero", "axis: [2, 0]", [SPARSE], [np.count_nonzero(SPARSE, (0, 2))]),
    Case("CountNonzero", "keepdims: true", [SPARSE], [np.full((1, 1, 1), (SPARSE != 0).sum())]),
    Case("ReduceAll", "axis: -1", [SPARSE], [SPARSE.all(-1)]),
    Case("ReduceAny", "axis: [0, -1] keepdims: true", [SPARSE], [SPARSE.any((0, 2), keepdims=True)]),
    Case("NotEqual", "comparand: 0", [SPARSE], [SPARSE != 0]),
    Case("NotEqual", "", [SPARSE, np.abs(SPARSE)], [np.abs(SPARSE) != SPARSE]),
    Case("NotEqual", "", [SPARSE], [np.abs(SPARSE) != SPARSE], [np.abs(SPARSE)]),
    Case("OneHot", "depth: 4 on_value: 2 off_value: -1 axis: 1", [3 * X], [hot(3 * X, 4, 1)]),
    Case("OneHot", "depth: 3 on_value: 2 off_value: -1", [3 * X], [hot(3 * X, 3, 3)]),
    Case("Mul", "mul_shape: [4, 1]", [X], [X * TABLES[0][:, :1]], [TABLES[0][:, :1]]),
    Case("Mul", "", [X, TABLES[0][:, :1]], [X * TABLES[0][:, :1]]),
    Case("ReverseSequence", "seq_axis: 1", [X, np.array([2, 4, 1], np.float32)], [REVERSED]),
    Case("ScatterND", "", [X, INDEX, NEWS], [SCATTERED]),
    Case("ScatterND", "is_data_param: true is_updates_param: true", [INDEX], [SCATTERED], [X, NEWS]),
    Case("ScatterND", "is_indices_param: true indices_shape: [2, 2]", [X, NEWS], [SCATTERED], [INDEX]),
    Case(
        "SparseToDense",
        "sparse_indices: [0, 1, 1, 2] sparse_indices_shape: [2, 2] "
        "output_shape: [2, 3] sparse_values: [1.5, 2.5] default_value: 0.5",
        [],
        [np.array([[0.5, 1.5, 0.5], [0.5, 0.5, 2.5]])],
    ),
    Case(
        "SparseToDense",
        "sparse_indices: [0, 2] sparse_indices_shape: 2 output_shape: 4 sparse_values: 1.75",
        [],
        [np.array([1.0, 0, 1, 0])],
    ),
    Case(
        "SparseToDense",
        "sparse_indices: 2 sparse_indices_shape: 0 output_shape: 4 sparse_values: 1.75",
        [],
        [np.array([0, 0, 1.75, 0])],
    ),
    Case(
        "BatchToSpaceND",
        "block_shape: [2, 3] crops: [0, 1, 2, 0]",
        [VOLUME.reshape(6, 5, 6, 7)],
        [to_space(VOLUME.reshape(6, 5, 6, 7), [2, 3], [0, 1, 2, 0])],
    ),
    Case("TopkGather", "axis: 0 top_k: 3", [X[:, 0, 0]], [np.sort(X[:, 0, 0])[::-1]]),
    Case(
        "Where4",
        "num_output: 5",
        [LEVELS],
        [np.array([[0, 1], [0, 3], [0, 0], [0, 5], [0, 4]])],
    ),
    Case(
        "Where4Gathernd",
        "num_output: 6",
        [IMAGE[:1, :, :, 0].transpose(0, 2, 1).copy(), LEVELS],
        [IMAGE[0, :, [1, 3, 0, 5, 4, 2], 0]],
    ),
    Case(
        "Mean",
        "operation: SUBTRACT value: [1.5, 2.5] mean_scale: 2 input_scale: 3 output_scale: 0.5",
        [IMAGE, IMAGE[:, :2]],
        [0.5 * (3 * IMAGE - 2 * MEANS), 0.5 * (3 * IMAGE[:, :2] - 2 * MEANS[:2])],
    ),
    Case("Mean", "operation: ADD value: 1.5", [IMAGE], [IMAGE + 1.5]),
    Case("SeLUDropout", "dropout_ratio: 0.3", [X], [X]),
    Case("XLU", "negative_slope: 0.5 maximum: 1.5 minimum: -0.75", [WIDE], [xlu(WIDE, 0.5, -0.75, 1.5)]),
    Case("XLU", "relu6: true", [np.append(WIDE, np.float32(np.nan))], [np.append(xlu(WIDE, 0, 0, 6), 0)]),
    Case("XLU", "maximum: 1", [X, np.full((1,), 0.5, np.float32)], [xlu(X, 0, 0, 0.5)]),
    Case("XLU", "maximum: 1", [X, np.full((1,), -1, np.float32)], [xlu(X, 0, 0, np.inf)]),
    Case("Pooling3D", "kernel_size: 2 stride: 2", [VOLUME], [pooled(VOLUME, (2, 2, 2), (2, 2, 2), [0] * 6)]),
    Case(
        "Pooling3D",
        "kernel_d: 2 kernel_h: 3 kernel_w: 2 stride_d: 1 stride_h: 2 stride_w: 2 "
        "pad_d1: 1 pad_h0: 1 pad_h1: 2 ceil_mode: true",
        [VOLUME],
        [pooled(VOLUME, (2, 3, 2), (1, 2, 2), [0, 1, 1, 2, 0, 1])],
    ),
    Case(
        "Pooling3D",
        "global_pooling: true stride: 1",
        [VOLUME],
        [VOLUME.max((2, 3, 4), keepdims=True)],
    ),
    squeezed(offsets=True),
    squeezed(offsets=False),
    multiplied(),
    Case(
        "Tensor2Box",
        "num_classes: 2 img_dim_h: 25 img_dim_w: 40 anchors_x: [10, 20] anchors_y: [15, 30]",
        [HEAD],
        [boxes(HEAD, [(10, 15), (20, 30)], (25, 40))],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_layer_computes_what_its_source_does(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


def test_space_to_batch_undoes_batch_to_space_but_for_what_is_cut(tmp_path: Path) -> None:
    x = RANDOM.normal(6, 2, 3, 4)
    layer = 'type: "SpaceToBatchND" space_to_batch_nd_param { block_shape: [2, 3] paddings: [1, 0, 0, 2] }'
    (found,) = computed(layer, [to_space(x, [2, 3], [1, 0, 0, 2])], tmp_path)
    whole = to_space(x, [2, 3], [0] * 4)
    whole[:, 0], whole[:, :, -2:] = 0, 0
    np.testing.assert_array_equal(to_space(found, [2, 3], [0] * 4), whole)


@pytest.mark.parametrize(
    ("layer", "bottoms", "sentence"),
    [
        ('type: "Gather" gather_param { indices: 4 shape: 1 axis: 1 }', [X], "behind the axis"),
        ('type: "EmbeddingLookup" embedding_lookup_param { ids: 1 ids_shape: 1 }', TABLES, "yields zeros"),
        (LOOKED % ("2", "0"), TABLES, "yields zeros"),
        (
            LOOKED % ("2", "9999999999"),
            [TABLES[0][:1], TABLES[1]],
            "each id has a row",
        ),  # not one of the next
        ('type: "NotEqual" not_equal_param { comparand: 1 }', [X, X], "means nothing"),
        ('type: "Mean" mean_param { operation: ADD file: "mean.binaryproto" }', [IMAGE], "is not read"),
        (
            'type: "Pooling3D" pooling3d_param { kernel_size: 2 stride: 2 pool: AVE }',
            [VOLUME],
            "yields zeros",
        ),
        ('type: "TopkGather" topk_gather_param { axis: 1 }', [X], "a list is due"),
        ('type: "XLU" xlu_param { saturate: Signed }', [X], "quantized"),
        (
            'type: "DataAugmentation" augmentation_param { max_multiplier: 1 }',
            [IMAGE],
            "draws random numbers",
        ),
        ('type: "FlowAugmentation"', [IMAGE], "draws random numbers"),
    ],
)
def test_what_cannot_be_told_is_refused(
    layer: str, bottoms: list[Floats], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(CaffeforgeError, match=sentence):
        computed(layer, bottoms, tmp_path)


@pytest.mark.parametrize("layer", ["L1Loss", "MultiBoxLoss", "YoloV3Loss", "FLOWriter", "SegAccuracy"])
def test_a_layer_that_only_training_needs_is_left_out(layer: str, tmp_path: Path) -> None:
    text = f'type: "ReLU" }}\nlayer {{ name: "z" type: "{layer}" bottom: "y0" top: "z"'
    (found,) = computed(text, [X], tmp_path)
    np.testing.assert_array_equal(found, np.maximum(X, 0))
