"""Finding a backend: a name among the generated packages or installed plug-ins, or a package's folder."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from importlib import import_module, util
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from pkgutil import iter_modules

from caffeforge.runtime.backend import Backend
from caffeforge.runtime.errors import UsageError
from caffeforge.runtime.onnx_out.backend import OnnxBackend

GROUP = "caffeforge.backends"  # entry points of packages that bring backends of their own
NOT_BACKENDS = ("hub", "onnx")
ONNX_MARK = "opset.py"  # a file that only the packages of ONNX backends have


def names() -> list[str]:
    """Return the names of all Caffe dialects that are installed."""
    return [name for name in all_names() if name not in onnx_names()]


def onnx_names() -> list[str]:
    """Return the names of all backends that caffeforge brings and that write ONNX files, by their opsets."""
    found = [name for name in _generated() if (_folder_of(name) / ONNX_MARK).exists()]
    return sorted(found, key=lambda name: (len(name), name) if name.startswith("onnx_opset") else (99, name))


def all_names() -> list[str]:
    """Return the names of all backends that are installed."""
    return sorted({*_generated(), *_plugged()})


def _plugged() -> dict[str, EntryPoint]:
    """Return what installed packages announce, by name; all of them are searched, which takes a while."""
    return {point.name: point for point in entry_points(group=GROUP)}


def _generated() -> list[str]:
    import caffeforge.generated

    found = [m.name for m in iter_modules(caffeforge.generated.__path__) if m.ispkg]
    return [name for name in found if name not in NOT_BACKENDS]


def _folder_of(name: str) -> Path:
    import caffeforge.generated

    return next(Path(path) / name for path in caffeforge.generated.__path__ if (Path(path) / name).is_dir())


def dialects() -> list[Backend]:
    """Return all installed Caffe dialects."""
    plugged = _plugged()
    each = [_named(name, plugged) for name in sorted({*_generated(), *plugged})]
    return [found for found in each if isinstance(found, Backend)]


def find(backend: str | Path | Backend) -> Backend:
    """Return a Caffe dialect; see `find_any`.

    Raises:
        UsageError: there is none of that name, or it writes ONNX files.
    """
    found = find_any(backend)
    if isinstance(found, OnnxBackend):
        raise UsageError(
            f"{found.name} writes ONNX files, a Caffe dialect is due here",
            hint=f"there are: {', '.join(names())}",
        )
    return found


def find_any(backend: str | Path | Backend | OnnxBackend) -> Backend | OnnxBackend:
    """Return a backend.

    Args:
        backend: itself, its name, or the folder of a generated package; a name comes before a folder.

    Raises:
        UsageError: there is none of that name, or the folder holds no backend.
    """
    if isinstance(backend, (Backend, OnnxBackend)):
        return backend
    if isinstance(backend, Path):
        return _from_folder(backend)
    plugged = _plugged()
    if backend in plugged or backend in _generated():
        return _named(backend, plugged)
    if Path(backend).is_dir():
        return _from_folder(Path(backend))
    raise _missing(backend)


def _named(name: str, plugged: Mapping[str, EntryPoint]) -> Backend | OnnxBackend:
    """Return a backend that is there; an installed package's goes before the one that caffeforge brings."""
    load = plugged[name].load if name in plugged else partial(import_module, f"caffeforge.generated.{name}")
    return _checked(_imported(load, name), name)


def _from_folder(folder: Path) -> Backend | OnnxBackend:
    init = folder / "__init__.py"
    if not init.is_file():
        hint = "give the folder that gen-backend wrote, generated/vendorx"
        if any((folder / name).exists() for name in ("mapping.yaml", "caffe.proto")):
            hint = f"it holds a schema: run gen-backend {folder}, and give the folder that this writes"
        raise UsageError("there is no generated package in this folder", where=str(folder), hint=hint)
    name = _module_name(folder)
    for stale in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
        del sys.modules[stale]  # it may have been generated anew since
    spec = util.spec_from_file_location(name, init, submodule_search_locations=[str(folder)])
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    _imported(partial(spec.loader.exec_module, module), str(folder))
    return _checked(module, str(folder))


def _missing(backend: str) -> UsageError:
    """Return the error for a backend that is not there, with the way to one that is."""
    name = Path(backend).name
    near = difflib.get_close_matches(name, all_names(), 1, 0.7)
    places = [Path(above) / name for above in ("generated", ".", Path(backend).parent)]
    written = next((str(place) for place in places if (place / "__init__.py").is_file()), "")
    if near or written:
        hint = f"did you mean {written or near[0]}?"
    else:
        known = f"there are: {', '.join(all_names())}"
        hint = f"{known}; one of your own is the folder that gen-backend writes, as generated/{name}"
    what = "folder" if name != backend else "backend"
    return UsageError(f"there is no {what} {backend!r}", hint=hint)


def _module_name(folder: Path) -> str:
    """Return a name of its own for each folder: two may be called alike."""
    path = folder.resolve()
    return f"caffeforge_backend_{path.name}_{sha256(os.fsencode(path)).hexdigest()[:8]}"


def _imported(load: Callable[[], object], name: str) -> object:
    """Import a package, which may be written for another release of the runtime."""
    try:
        return load()
    except ImportError as error:
        raise UsageError(f"backend {name} cannot be imported: {error}") from error


def _checked(found: object, name: str) -> Backend | OnnxBackend:
    backend = getattr(found, "BACKEND", found)
    if not isinstance(backend, (Backend, OnnxBackend)):
        raise UsageError(f"{name} is no backend of caffeforge", hint="generate it with gen-backend")
    return backend
