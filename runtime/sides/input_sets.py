"""The inputs of a comparison: random numbers, arrays in an .npz, or the images of a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.array_files import read_arrays
from caffeforge.runtime.errors import FileError, UsageError
from caffeforge.runtime.sides.side import Input

_IMAGES: Final = (".bmp", ".jpeg", ".jpg", ".png", ".webp")


@dataclass(frozen=True)
class Preparation:
    """What is done to an image, in this order: resize, subtract the mean, multiply.

    Attributes:
        mean: one number, or one a channel in the order of `color`.
        scale: what the difference is multiplied by.
        color: "rgb" or "bgr", as Caffe's own models take it.
    """

    mean: tuple[float, ...] = (0.0,)
    scale: float = 1.0
    color: str = "rgb"


def random_sets(inputs: Mapping[str, Input], count: int, seed: int) -> Iterator[dict[str, NDArray]]:
    """Yield `count` sets of normally distributed numbers.

    Raises:
        UsageError: an input is not of floating type; which integers are meant nobody knows.
    """
    for name, given in inputs.items():
        if not given.dtype.startswith("float"):
            raise UsageError(
                f"input {name} is {given.dtype}", hint="give its numbers in an .npz: --inputs FILE"
            )
    generator = np.random.default_rng(seed)
    for _ in range(count):
        yield {
            name: generator.standard_normal(given.shape, np.float32).astype(given.dtype)
            for name, given in inputs.items()
        }


def npz_sets(path: Path, inputs: Mapping[str, Input]) -> Iterator[dict[str, NDArray]]:
    """Yield sets of the arrays in an .npz by input name; a single array fits a single input of any name.

    Arrays that hold several batches, one behind the other, are as many sets.

    Raises:
        FileError: the file cannot be read.
        UsageError: an input is missing, unknown, or has another shape.
    """
    arrays = read_arrays(path)
    if len(arrays) == len(inputs) == 1:
        arrays = dict(zip(inputs, arrays.values(), strict=True))
    if set(arrays) != set(inputs):
        held = ", ".join(arrays) or "nothing"
        held = "one array" if list(arrays) == [""] else held
        raise UsageError(f"it holds {held}, the inputs are {', '.join(inputs)}", where=str(path))
    counts = {name: _batches(name, arrays[name], given, path) for name, given in inputs.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise UsageError(f"the inputs have different numbers of batches: {listed}", where=str(path))
    for index in range(next(iter(counts.values()), 0)):
        yield {
            name: np.ascontiguousarray(_batch(arrays[name], given, index), given.dtype)
            for name, given in inputs.items()
        }


def _batches(name: str, array: NDArray, given: Input, path: Path) -> int:
    """Return how many batches of an input an array holds.

    Raises:
        UsageError: it holds no whole number of them.
    """
    shape, due = array.shape, given.shape
    if shape == due:
        return 1
    if len(shape) == len(due) > 0 and shape[1:] == due[1:] and due[0] and shape[0] and not shape[0] % due[0]:
        return int(shape[0]) // due[0]
    raise UsageError(f"{name} has shape {list(shape)}, the input has {list(due)}", where=str(path))


def _batch(array: NDArray, given: Input, index: int) -> NDArray:
    if array.shape == given.shape:
        return array
    size = given.shape[0]
    return array[index * size : (index + 1) * size]


def is_image(path: Path) -> bool:
    """Tell whether a file has the name of an image."""
    return path.suffix.lower() in _IMAGES


def image_sets(folder: Path, inputs: Mapping[str, Input], how: Preparation) -> Iterator[dict[str, NDArray]]:
    """Yield a set for each image of a folder, in the order of their names.

    Raises:
        UsageError: the model has not one input [N, 1 or 3, H, W], or the mean does not fit it.
        FileError: the folder holds no image, or Pillow is not installed.
    """
    name, given = next(iter(inputs.items()))
    if len(inputs) != 1 or len(given.shape) != 4 or given.shape[1] not in (1, 3):
        raise UsageError(
            "images need a model of one input [N, 1 or 3, H, W]", hint="give an .npz: --inputs FILE"
        )
    if len(how.mean) not in (1, given.shape[1]):
        raise UsageError(f"the mean has {len(how.mean)} numbers, the input {given.shape[1]} channels")
    paths = sorted(path for path in folder.iterdir() if is_image(path))
    if not paths:
        raise FileError(f"there is no image ({', '.join(_IMAGES)})", where=str(folder))
    for path in paths:
        image = _image(path, given.shape[1:], how)
        yield {name: np.repeat(image[None], given.shape[0], axis=0).astype(given.dtype)}


def _image(path: Path, shape: Sequence[int], how: Preparation) -> NDArray:
    """Return an image as float32 [C, H, W]."""
    try:
        from PIL import Image
    except ImportError:
        raise FileError("reading images needs Pillow", where=str(path), hint="pip install pillow") from None
    channels, height, width = shape
    try:
        with Image.open(path) as opened:
            image = opened.convert("RGB" if channels == 3 else "L").resize((width, height))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):  # what Pillow raises
        raise FileError("this is no image that Pillow reads, or a damaged one", where=str(path)) from None
    array = np.asarray(image, np.float32).reshape(height, width, channels)
    if how.color == "bgr":
        array = array[:, :, ::-1]
    array = (array - np.asarray(how.mean, np.float32)) * np.float32(how.scale)
    return np.ascontiguousarray(array.transpose(2, 0, 1))
