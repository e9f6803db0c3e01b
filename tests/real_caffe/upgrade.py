"""Caffe's own upgrade of old nets, as a program: compiled against the Caffe that `build.sh` built, once."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.real_caffe.witness import cache_directory

SOURCE = Path(__file__).with_name("upgrade.cpp")
_FOLDERS = ("include", "/usr/include/hdf5/serial")
_LIBRARIES = ("caffe", "protobuf", "glog", "boost_system", "boost_thread", "boost_filesystem")


def program() -> Path:
    """Return the program, compiled if it is not there, or its source is newer.

    Raises:
        OSError: there is no compiler.
        subprocess.CalledProcessError: it does not compile.
    """
    built = cache_directory() / "real_caffe"
    target = built / "upgrade_nets"
    if target.exists() and target.stat().st_mtime >= SOURCE.stat().st_mtime:
        return target
    part = target.with_name(f"upgrade_nets.{os.getpid()}")
    library = built / "src" / "python" / "caffe"
    command: list[str | Path] = [
        "g++",
        "-std=c++14",
        "-w",
        "-DCPU_ONLY",
        *(f"-I{folder}" for folder in _FOLDERS),
        SOURCE,
    ]
    command += ["-o", part, f"-L{library}", f"-Wl,-rpath,{library}", *(f"-l{name}" for name in _LIBRARIES)]
    subprocess.run(command, cwd=built / "src", check=True, capture_output=True)
    part.replace(target)
    return target


def upgraded(files: Sequence[Path]) -> list[bytes | None]:
    """Return the NetParameter that Caffe makes of each file; None where it refuses one."""
    targets = [file.with_name(f"{file.name}.upgraded") for file in files]
    words = [word for pair in zip(files, targets, strict=True) for word in pair]
    quiet = {**os.environ, "GLOG_minloglevel": "3"}
    subprocess.run([program(), *words], check=True, capture_output=True, env=quiet)
    return [target.read_bytes() if target.exists() else None for target in targets]
