"""Arrays in files, as NumPy saves them: .npz with names, .npy with one array."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from caffeforge.runtime.array import NDArray
from caffeforge.runtime.errors import FileError

_NUMBERS = "fiub"  # kinds of NumPy's types


def read_arrays(path: Path, *, texts: bool = False) -> dict[str, NDArray]:
    """Return the arrays of an .npz by name, or the one of an .npy under an empty name.

    Args:
        path: the file.
        texts: whether arrays of texts are taken too.

    Raises:
        FileError: the file cannot be read, is neither, or holds something else than numbers.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = np.load(path, allow_pickle=False)
            arrays = {"": loaded}
            if not isinstance(loaded, np.ndarray):
                with loaded:
                    arrays = {name: loaded[name] for name in loaded.files}
    except FileNotFoundError:
        raise FileError("there is no such file", where=str(path)) from None
    except OSError as error:
        raise FileError(f"the file cannot be read: {error.strerror or error}", where=str(path)) from None
    except (ValueError, EOFError, TypeError, KeyError, zipfile.BadZipFile, NotImplementedError):
        raise FileError(
            "this is no .npz or .npy of numbers", where=str(path), hint="save it by numpy.save or savez"
        ) from None
    kinds = f"{_NUMBERS}U" if texts else _NUMBERS
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds:
            title = f"array {name}" if name else "the array"
            raise FileError(f"{title} holds no real numbers", where=str(path))
    return arrays


def write_arrays(path: Path, arrays: Mapping[str, NDArray]) -> None:
    """Write an .npz; unlike ``numpy.savez`` this takes every name, ``file`` too.

    Raises:
        OSError: it cannot be written.
    """
    with zipfile.ZipFile(path, "w", allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
