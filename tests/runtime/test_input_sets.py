"""Inputs of a comparison from files: what fits is taken, what does not is said in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caffeforge.runtime.array_files import read_arrays, write_arrays
from caffeforge.runtime.errors import CaffeforgeError, FileError, UsageError
from caffeforge.runtime.sides.input_sets import Preparation, image_sets, npz_sets
from caffeforge.runtime.sides.side import Input

INPUTS = {"image": Input((2, 3)), "scale": Input((1,))}


def random(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def test_several_batches_are_several_sets(tmp_path: Path) -> None:
    arrays = {"image": random(6, 3), "scale": random(3)}
    write_arrays(tmp_path / "in.npz", arrays)
    sets = list(npz_sets(tmp_path / "in.npz", INPUTS))
    assert len(sets) == 3
    np.testing.assert_array_equal(np.concatenate([each["image"] for each in sets]), arrays["image"])
    np.testing.assert_array_equal(sets[2]["scale"], arrays["scale"][2:])


def test_one_array_is_that_of_the_one_input(tmp_path: Path) -> None:
    array = random(2, 3)
    np.save(tmp_path / "in.npy", array.astype(np.float64))
    np.savez(tmp_path / "in.npz", other=array)
    for file in ("in.npy", "in.npz"):
        (found,) = npz_sets(tmp_path / file, {"image": INPUTS["image"]})
        assert found["image"].dtype == np.float32
        np.testing.assert_array_equal(found["image"], array)


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"image": random(2, 4), "scale": random(1)}, r"image has shape \[2, 4\], the input has \[2, 3\]"),
        ({"image": random(3, 3), "scale": random(1)}, r"image has shape \[3, 3\]"),
        ({"image": random(2, 3, 1), "scale": random(1)}, r"image has shape \[2, 3, 1\]"),
        ({"image": random(4, 3), "scale": random(1)}, "different numbers of batches: image 2, scale 1"),
        ({"image": random(2, 3)}, "it holds image, the inputs are image, scale"),
        ({}, "it holds nothing, the inputs are"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays: dict[str, Any], says: str, tmp_path: Path) -> None:
    write_arrays(tmp_path / "in.npz", arrays)
    with pytest.raises(UsageError, match=rf"in\.npz: .*{says}"):
        list(npz_sets(tmp_path / "in.npz", INPUTS))


def test_what_is_no_numbers_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "in.npz"
    for array in (np.array(["a"]), random(2) + 1j):
        np.savez(file, x=array)
        with pytest.raises(FileError, match="array x holds no real numbers"):
            read_arrays(file)
    np.savez(file, x=np.array([None]))
    objects, whole = file.read_bytes(), tmp_path / "whole.npz"
    np.savez(whole, x=random(50))
    for content in (objects, whole.read_bytes()[:150], b"hello", b""):
        file.write_bytes(content)
        with pytest.raises(FileError, match=r"this is no \.npz or \.npy of numbers"):
            read_arrays(file)
    with pytest.raises(FileError, match="there is no such file"):
        read_arrays(tmp_path / "nope.npz")


def test_any_name_can_be_written(tmp_path: Path) -> None:
    """``numpy.savez`` takes a keyword for each array, and one of its own is called file."""
    arrays = {"file": random(2), "a/b": random(3), "self": random()}
    write_arrays(tmp_path / "out.npz", arrays)
    for found in (read_arrays(tmp_path / "out.npz"), dict(np.load(tmp_path / "out.npz"))):
        assert list(found) == list(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)


def test_an_image_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.zeros((400, 300, 3), np.uint8)).save(tmp_path / "a.png")
    given = {"x": Input((1, 3, 4, 5))}
    assert next(image_sets(tmp_path, given, Preparation()))["x"].shape == (1, 3, 4, 5)
    whole = (tmp_path / "a.png").read_bytes()
    for content in (b"nope", whole[: len(whole) // 2]):
        (tmp_path / "a.png").write_bytes(content)
        with pytest.raises(CaffeforgeError, match=r"a\.png: this is no image that Pillow reads"):
            list(image_sets(tmp_path, given, Preparation()))
