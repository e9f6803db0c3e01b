"""Changing the size of images: interpolation in every mode, and sampling at given places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch._ops import OpOverload

from caffeforge.generated import hub
from caffeforge.runtime.graph import Value
from caffeforge.runtime.symbol import Dim, Symbol
from caffeforge.runtime.torch_front.call import Call
from caffeforge.runtime.torch_front.registry import torch_op

aten = torch.ops.aten

# The fields of Resize that say how PyTorch interpolates when corners are not aligned.
_Fields = Mapping[str, Any]
_NEAREST: Final[_Fields] = {
    "mode": "nearest",
    "coordinate_transformation_mode": "asymmetric",
    "nearest_mode": "floor",
}
_EXACT: Final[_Fields] = {  # between two pixels the one behind is taken
    "mode": "nearest",
    "coordinate_transformation_mode": "half_pixel",
    "nearest_mode": "round_prefer_ceil",
}
_LINEAR: Final[_Fields] = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
_CUBIC: Final[_Fields] = {
    "mode": "cubic",
    "coordinate_transformation_mode": "half_pixel",
    "cubic_coeff_a": -0.75,
}
_LINEAR_AA: Final[_Fields] = {**_LINEAR, "antialias": 1, "exclude_outside": 1}
_CUBIC_AA: Final[_Fields] = {**_CUBIC, "cubic_coeff_a": -0.5, "antialias": 1, "exclude_outside": 1}

_MODES: Final[Mapping[OpOverload, _Fields]] = {
    aten.upsample_nearest1d.vec: _NEAREST,
    aten.upsample_nearest1d.default: _NEAREST,
    aten.upsample_nearest2d.vec: _NEAREST,
    aten.upsample_nearest2d.default: _NEAREST,
    aten.upsample_nearest3d.vec: _NEAREST,
    aten.upsample_nearest3d.default: _NEAREST,
    aten._upsample_nearest_exact1d.vec: _EXACT,
    aten._upsample_nearest_exact1d.default: _EXACT,
    aten._upsample_nearest_exact2d.vec: _EXACT,
    aten._upsample_nearest_exact2d.default: _EXACT,
    aten._upsample_nearest_exact3d.vec: _EXACT,
    aten._upsample_nearest_exact3d.default: _EXACT,
    aten.upsample_linear1d.vec: _LINEAR,
    aten.upsample_linear1d.default: _LINEAR,
    aten.upsample_bilinear2d.vec: _LINEAR,
    aten.upsample_bilinear2d.default: _LINEAR,
    aten.upsample_trilinear3d.vec: _LINEAR,
    aten.upsample_trilinear3d.default: _LINEAR,
    aten.upsample_bicubic2d.vec: _CUBIC,
    aten.upsample_bicubic2d.default: _CUBIC,
    aten._upsample_bilinear2d_aa.vec: _LINEAR_AA,
    aten._upsample_bilinear2d_aa.default: _LINEAR_AA,
    aten._upsample_bicubic2d_aa.vec: _CUBIC_AA,
    aten._upsample_bicubic2d_aa.default: _CUBIC_AA,
}

_SAMPLED: Final = ("linear", "nearest", "cubic")  # PyTorch's numbers of the modes of grid_sample
_OUTSIDE: Final = ("zeros", "border", "reflection")


@torch_op(*_MODES)
def upsample(call: Call) -> Value:
    """Become Resize, by scales where they are what PyTorch computes with, else by sizes.

    aten::upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor
    aten::upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor
    aten::upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor
    aten::upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float?
    scales_w=None) -> Tensor
    aten::upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor
    aten::upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float?
    scales_h=None, float? scales_w=None) -> Tensor
    aten::_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) ->
    Tensor
    aten::_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor
    aten::_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) ->
    Tensor
    aten::_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float?
    scales_w=None) -> Tensor
    aten::_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) ->
    Tensor
    aten::_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float?
    scales_h=None, float? scales_w=None) -> Tensor
    aten::upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]?
    scale_factors) -> Tensor
    aten::upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) ->
    Tensor
    aten::upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]?
    scale_factors) -> Tensor
    aten::upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float?
    scales_h=None, float? scales_w=None) -> Tensor
    aten::upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]?
    scale_factors) -> Tensor
    aten::upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float?
    scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor
    aten::upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]?
    scale_factors) -> Tensor
    aten::upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None,
    float? scales_w=None) -> Tensor
    aten::_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]?
    scale_factors) -> Tensor
    aten::_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float?
    scales_h=None, float? scales_w=None) -> Tensor
    aten::_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]?
    scale_factors) -> Tensor
    aten::_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float?
    scales_h=None, float? scales_w=None) -> Tensor
    """
    x = call.value("self" if call.has("self") else "input")
    fields = dict(_MODES[call.overload])
    if call.has("align_corners") and call.argument("align_corners"):
        if "antialias" in fields:
            return _resized_by_products(call, x)
        fields["coordinate_transformation_mode"] = "align_corners"
    sizes, outs = x.dims[2:], call.dims[2:]
    scales = _scales(call, sizes, outs)
    # Between aligned corners PyTorch goes by the sizes, ONNX by the size times the scale, whole or not.
    aligned = fields["coordinate_transformation_mode"] == "align_corners"
    if (
        aligned
        and scales is not None
        and any(not _reaches(n, s, o) for s, n, o in zip(scales, sizes, outs, strict=True))
    ):
        scales = None
    if scales is not None:
        return call.node(hub.Resize(**fields, scales=(1.0, 1.0, *scales)), x)
    if any(isinstance(dim, Symbol) for dim in call.dims):
        return call.node(hub.Resize(**fields), x, None, None, call.shape_value(call.dims))
    return call.node(hub.Resize(**fields, sizes=call.shape), x)


@torch_op(aten.grid_sampler.default, aten.grid_sampler_2d.default, aten.grid_sampler_3d.default)
def grid_sampler(call: Call) -> Value:
    """Lower as it is.

    aten::grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode,
    bool align_corners) -> Tensor
    aten::grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode,
    bool align_corners) -> Tensor
    aten::grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode,
    bool align_corners) -> Tensor
    """
    op = hub.GridSample(
        mode=_SAMPLED[call.argument("interpolation_mode")],
        padding_mode=_OUTSIDE[call.argument("padding_mode")],
        align_corners=int(call.argument("align_corners")),
    )
    return call.node(op, call.value("input"), call.value("grid"))


@torch_op(aten.affine_grid_generator.default)
def affine_grid(call: Call) -> Value:
    """Lower as it is.

    aten::affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor
    """
    op = hub.AffineGrid(align_corners=int(call.argument("align_corners")), size=call.ints("size"))
    return call.node(op, call.value("theta"))


def _resized_by_products(call: Call, x: Value) -> Value:
    """Multiply columns and rows by what PyTorch makes of a unit matrix; ONNX has no such interpolation."""
    for axis in (2, 3):
        size, out = x.shape[axis], call.shape[axis]
        unit = torch.eye(size, dtype=call.example("input" if call.has("input") else "self").dtype)
        weights = call.overload.overloadpacket.default(unit.reshape(1, 1, size, size), [out, size], True)[
            0, 0
        ]
        dims = (*x.dims[:axis], out, *x.dims[axis + 1 :])
        if axis == 2:
            x = call.helper(hub.MatMul(), call.tensor(weights), x, dims=dims)
        else:
            x = call.helper(hub.MatMul(), x, call.tensor(weights.t().contiguous()), dims=dims)
    return x


def _scales(call: Call, sizes: Sequence[Dim], outs: Sequence[Dim]) -> list[float] | None:
    """Return the scales that PyTorch was given, or those of whole factors; else None.

    Of a size that is a symbol the factor is not looked for, unless the size stays.
    """
    given = _given_scales(call)
    scales = []
    for index, (size, out) in enumerate(zip(sizes, outs, strict=True)):
        scale = given[index] if given else None
        if scale is None:
            if size == out:
                scale = 1.0
            elif not isinstance(size, int) or not isinstance(out, int) or out % size:
                return None
            else:
                scale = out / size
        elif isinstance(size, int) and int(size * scale) != out:
            raise call.error(
                f"takes {size} to {out} by the scale {scale}", hint="give a size or scales, not both"
            )
        scales.append(float(scale))
    return scales


def _reaches(size: Dim, scale: float, out: Dim) -> bool:
    """Tell whether a size times a scale is exactly the size of the result."""
    if isinstance(size, int):
        return size * scale == out
    return scale.is_integer() and size * int(scale) == out


def _given_scales(call: Call) -> list[float | None] | None:
    if call.has("scale_factors"):
        return list(call.argument("scale_factors"))
    names = [name for name in ("scales", "scales_d", "scales_h", "scales_w") if call.knows(name)]
    return [call.argument(name) for name in names] or None
