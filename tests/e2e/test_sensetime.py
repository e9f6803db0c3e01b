"""NART and PPQ as they are shipped: their own layers compute what is told of them, the rest is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime.backends import find
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.loaded import load
from tests.e2e import vendor
from tests.e2e.known_formulas import Floats, X, noise
from tests.e2e.known_layer_cases import Case
from tests.e2e.sensetime_layer_cases import CASES, DEEP, KERNELS, LEFT, MAPS, NART, RIGHT, SEQUENCE, SLID

BOTH = ("nart", "ppq")
ALONE = {  # by their messages
    "correlation.kernels": "nart",
    "correlation.row": "nart",
    "correlation.row_ppq": "ppq",
    "deformable_convolution": "nart",
    "psroi_mask_pooling": "nart",
    "roi_align.pod": "nart",
    "reduce.operation": "nart",
    "reduce.mode": "ppq",
}
HELD = [("nart", case) for case in NART]
HELD += [(dialect, case) for case in CASES for dialect in BOTH if ALONE.get(case.id, dialect) == dialect]


def computed(dialect: str, case: Case, folder: Path) -> Floats:
    """Return what a layer gives in a net that protobuf wrote under the dialect's schema."""
    names = [f"x{index}" for index in range(len(case.bottoms))]
    text = ""
    for name, bottom in zip(names, case.bottoms, strict=True):
        text += f'input: "{name}" input_shape {{ dim: {[*bottom.shape]} }}\n'
    read = " ".join(f'bottom: "{name}"' for name in names)
    text += f'layer {{ name: "y" {read} top: "y" {case.layer} }}\n'
    files = vendor.write(folder, text, {"y": case.blobs}, dialect)
    return np.asarray(load(*files, find(dialect)).run(dict(zip(names, case.bottoms, strict=True)))["y"])


@pytest.mark.parametrize(("dialect", "case"), HELD, ids=lambda value: getattr(value, "layer", value))
def test_a_layer_computes_what_its_source_does(dialect: str, case: Case, tmp_path: Path) -> None:
    np.testing.assert_allclose(computed(dialect, case, tmp_path), case.expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dialect", BOTH)
@pytest.mark.parametrize(
    ("fields", "axes", "varied"),
    [
        ("", (2, 3), True),
        ("mvn_param { across_channels: true }", (1, 2, 3), True),
        ("mvn_param { normalize_variance: false }", (2, 3), False),
    ],
)
def test_the_mean_and_the_variance_are_taken_away(
    dialect: str, fields: str, axes: tuple[int, ...], varied: bool, tmp_path: Path
) -> None:
    expected = X - X.mean(axes, keepdims=True)
    if varied:
        expected = expected / X.std(axes, keepdims=True)
    found = computed(dialect, Case("mvn", f'type: "MVN" {fields}', (X,), expected), tmp_path)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


PSROI = 'type: "PSROIMaskPooling" psroi_mask_pooling_param { spatial_scale: 0.5 output_dim: 2 group_size: 2 }'


@pytest.mark.parametrize(
    ("dialect", "layer", "bottoms", "sentence"),
    [
        ("nart", 'type: "Crop" crop_param { crop_h: 3 crop_w: 6 }', (X,), "which side loses more"),
        ("ppq", 'type: "Crop" crop_param { type: RANDOM crop_h: 2 crop_w: 6 }', (X,), "for training"),
        ("nart", 'type: "Crop" crop_param { crop_h: 2 crop_w: 6 offset_h: 1 }', (X,), "offset_h are not"),
        ("ppq", 'type: "Crop" crop_param { crop_h: 6 crop_w: 6 }', (X,), "no larger than the bottom"),
        ("nart", 'type: "Correlation" correlation_param { groups: 2 }', (KERNELS, SLID), "groups is 1"),
        ("nart", 'type: "Correlation"', (SLID, KERNELS), "larger than what they slide over"),
        (
            "ppq",
            'type: "Correlation1D" correlation_param { kernel_size: 1 max_displacement: 3 }',
            (LEFT, RIGHT),
            "single_direction -1",
        ),
        (
            "nart",
            'type: "Pooling3d" pooling3d_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }',
            (DEEP,),
            "by what its sum is divided",
        ),
        (
            "nart",
            'type: "Pooling3d" pooling3d_param { kernel_size: 2 kernel_d: 2 }',
            (DEEP,),
            "the window is",
        ),
        (
            "ppq",
            'type: "Convolution3d" convolution3d_param { num_output: 8 kernel_size: 3 }',
            (DEEP,),
            "bias_term and the number of blobs",
        ),
        ("nart", 'type: "BatchNorm3d"', (DEEP,), "statistics of the batch"),
        ("ppq", 'type: "Pooling3d" pooling3d_param { global_pooling: true pad: 1 }', (DEEP,), "the whole"),
        ("nart", PSROI, (noise(2, 8, 6, 6), np.array([[-1, 0, 0, 9, 9]], np.float32)), "one of 2 images"),
        ("nart", PSROI, (noise(2, 8, 6, 6), np.array([[0, 0, 9, 9]], np.float32)), "and four numbers"),
        ("nart", 'type: "ReLU3d" relu3d_param { channel_shared: true }', (DEEP,), "channel_shared"),
        ("ppq", 'type: "Reduce" reduce_param { mode: 1 }', (X,), "a mode other than 0"),
        (
            "nart",
            'type: "HeatMap2Coord" heatmap_param { coord_h: 9 coord_w: 9 coord_reposition: true }',
            (MAPS[:, :, :2].copy(),),
            "three rows and columns",
        ),
        (
            "nart",
            'type: "SLLSTM" recurrent_param { num_output: 4 }',
            (SEQUENCE,),
            "two rows of offsets",
        ),
    ],
)
def test_what_is_not_known_is_refused(
    dialect: str, layer: str, bottoms: tuple[Floats, ...], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(CaffeforgeError, match=sentence):
        computed(dialect, Case("", layer, bottoms, bottoms[0]), tmp_path)


@pytest.mark.parametrize(
    ("dialect", "kind", "sentence"),
    [
        ("nart", "LSTM", "hidden_bias"),
        ("nart", "PSROIAlignPooling", "sample_num samples between"),
        ("nart", "ROIAlignPooling", "two readers"),
        ("nart", "TopkSoftmax", "not among the first topk"),
        ("nart", "Warp", "tells its sizes alone"),
        ("ppq", "LSTM", "converts no such layer"),
        ("ppq", "PSROIAlignPooling", "differ about sample_num"),
    ],
)
def test_layers_that_nobody_tells_are_refused_with_the_reason(
    dialect: str, kind: str, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(CaffeforgeError, match=f"(?s){kind}.*{sentence}"):
        computed(dialect, Case("", f'type: "{kind}"', (X,), X), tmp_path)


@pytest.mark.parametrize(
    ("dialect", "layer", "bottoms", "expected"),
    [
        ("nart", "Abs", (X,), abs(X)),
        ("nart", "Axpy", (X[:, :, :1, :1], X, X), X * X[:, :, :1, :1] + X),
        ("nart", "Exchange", (X,), X.transpose(3, 0, 1, 2)),
        ("nart", "Hswish", (X,), X * (X / 6 + 0.5).clip(0, 1)),
        ("nart", "Hsigmoid", (X,), (X / 6 + 0.5).clip(0, 1)),
        ("nart", "Mul", (X, X[:, :, :1]), X * X[:, :, :1]),
        ("nart", "Reciprocal", (X,), 1 / X),
        ("ppq", "Add", (X, X[:, :1]), X + X[:, :1]),
        ("ppq", "Mul", (X, X[:, :1]), X * X[:, :1]),
    ],
)
def test_layers_without_parameters_compute_what_their_names_say(
    dialect: str, layer: str, bottoms: tuple[Floats, ...], expected: Floats, tmp_path: Path
) -> None:
    found = computed(dialect, Case("", f'type: "{layer}"', bottoms, expected), tmp_path)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_the_shape_of_a_parameter_is_not_read_by_nart(tmp_path: Path) -> None:
    layer = 'type: "Parameter" parameter_param { m: 4 n: 6 shape { dim: [4, 6] } }'
    with pytest.raises(CaffeforgeError, match="shape"):
        computed("nart", Case("", layer, (), X, (X[0, 0],)), tmp_path)


def test_a_matrix_of_four_axes_is_refused_as_a_parameter(tmp_path: Path) -> None:
    with pytest.raises(CaffeforgeError, match="whether a matrix has a batch"):
        layer = 'type: "Parameter" parameter_param { m: 4 n: 6 }'
        computed("ppq", Case("", layer, (), X, (X[:1, :1, :4, :6],)), tmp_path)
