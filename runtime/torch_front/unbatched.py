"""Operators on images that are given one without a batch axis, which PyTorch allows and ONNX does not.

They are rewritten as PyTorch itself means them: a batch of one goes in, and its only result comes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch._ops import OpOverload
from torch.fx import Node

aten = torch.ops.aten

# The axes of an image behind its channels.
_AXES: Final[Mapping[object, int]] = {
    aten.conv1d.default: 1,
    aten.conv1d.padding: 1,
    aten.conv2d.default: 2,
    aten.conv2d.padding: 2,
    aten.conv3d.default: 3,
    aten.conv3d.padding: 3,
    aten.conv_transpose1d.default: 1,
    aten.conv_transpose2d.input: 2,
    aten.conv_transpose3d.input: 3,
    aten.im2col.default: 2,
    aten.col2im.default: 1,
    aten.avg_pool1d.default: 1,
    aten.avg_pool2d.default: 2,
    aten.avg_pool3d.default: 3,
    aten.max_pool1d.default: 1,
    aten.max_pool2d.default: 2,
    aten.max_pool3d.default: 3,
    aten.max_pool1d_with_indices.default: 1,
    aten.max_pool2d_with_indices.default: 2,
    aten.max_pool3d_with_indices.default: 3,
    aten.adaptive_avg_pool1d.default: 1,
    aten.adaptive_avg_pool2d.default: 2,
    aten.adaptive_avg_pool3d.default: 3,
    aten.adaptive_max_pool1d.default: 1,
    aten.adaptive_max_pool2d.default: 2,
    aten.adaptive_max_pool3d.default: 3,
    aten.pixel_shuffle.default: 2,
    aten.pixel_unshuffle.default: 2,
}


def lacks_batch(node: Node) -> bool:
    """Tell whether an operator is given an image without a batch axis, as its first argument."""
    axes = _AXES.get(node.target)
    image = node.args[0]
    return axes is not None and isinstance(image, Node) and image.meta["val"].dim() == axes + 1


def with_batch(op: OpOverload, image: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """Call `op` on a batch of one image; return its results without the batch axis."""
    results = op(image.unsqueeze(0), *args, **kwargs)
    if isinstance(results, torch.Tensor):
        return results.squeeze(0)
    return [result.squeeze(0) for result in results]
