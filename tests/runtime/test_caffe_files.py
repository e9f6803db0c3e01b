"""Writing all files of a net or none, and reading prototxt and caffemodel that belong together."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from caffeforge.runtime.array import Array, Dense, NDArray
from caffeforge.runtime.caffe_files import read_files, write_files
from caffeforge.runtime.errors import FileError, GraphError, UsageError, VerificationError
from caffeforge.runtime.net import Net
from caffeforge.runtime.prototxt import print_net
from tests.runtime.fake_dialect import dialect
from tests.runtime.test_prototxt import small_net

WEIGHT = np.arange(12, dtype=np.float32).reshape(4, 3, 1, 1)
BIAS = np.array([1, 2, 3, 4], np.float32)


def net_with_weights(scale: float = 1) -> Net:
    net = small_net()
    net.layers[1].blobs = (Dense(WEIGHT * np.float32(scale)), Dense(BIAS))
    return net


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder, and the folders as empty names."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("stem", ["net", "resnet18.v1", "new/folder/a.b.c", ".hidden", "網"])
def test_three_files_are_written_and_read_back(stem: str, tmp_path: Path) -> None:
    net = net_with_weights()
    files = write_files(net, dialect().backend, tmp_path / stem, '{"a": 1}\n')
    assert [str(file) for file in files] == [
        f"{tmp_path}/{stem}{suffix}" for suffix in (".prototxt", ".caffemodel", ".map.json")
    ]
    assert files[0].read_text() == print_net(net)
    assert files[2].read_text() == '{"a": 1}\n'
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 3
    read = read_files(files[0], files[1], dialect().backend)
    assert print_net(read) == print_net(net)
    assert np.array_equal(read.layers[1].blobs[0].numpy(), WEIGHT)
    assert read.notes == []


def test_the_check_sees_the_files_before_the_old_ones_are_replaced(tmp_path: Path) -> None:
    stem = tmp_path / "net"
    write_files(net_with_weights(), dialect().backend, stem, "old")
    old = contents(tmp_path)
    seen = []

    def check(prototxt: Path, caffemodel: Path) -> None:
        read = read_files(prototxt, caffemodel, dialect().backend)
        seen.append(read.layers[1].blobs[0].numpy()[3, 2, 0, 0])
        assert {name: raw for name, raw in contents(tmp_path).items() if name in old} == old

    write_files(net_with_weights(2), dialect().backend, stem, "new", check)
    assert seen == [22.0]
    assert sorted(contents(tmp_path)) == sorted(old)
    assert (tmp_path / "net.map.json").read_text() == "new"


class Failing(Array):
    """Weights that cannot be computed."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        super().__init__((2,), "float32")
        self.error = error

    def rows(self, start: int, stop: int) -> NDArray:
        raise self.error


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("error", [GraphError("no"), KeyboardInterrupt(), MemoryError()])
def test_a_failure_while_writing_leaves_everything_as_it_was(
    error: BaseException, old: bool, tmp_path: Path
) -> None:
    stem = tmp_path / "made" / "here" / "net"
    if old:
        write_files(net_with_weights(), dialect().backend, stem, "old")
    before = contents(tmp_path)
    net = net_with_weights()
    net.layers[2].blobs = (Failing(error),)
    with pytest.raises(type(error)):
        write_files(net, dialect().backend, stem, "new")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("old", [True, False])
def test_a_check_that_fails_leaves_everything_as_it_was(old: bool, tmp_path: Path) -> None:
    stem = tmp_path / "out" / "net"
    if old:
        write_files(net_with_weights(), dialect().backend, stem, "old")
    before = contents(tmp_path)

    def check(prototxt: Path, caffemodel: Path) -> None:
        raise VerificationError("the third layer diverges")

    with pytest.raises(VerificationError, match="diverges"):
        write_files(net_with_weights(2), dialect().backend, stem, "new", check)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("failing", range(1, 7))
@pytest.mark.parametrize("old", [True, False])
def test_a_move_that_fails_leaves_everything_as_it_was(
    failing: int, old: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stem = tmp_path / "out" / "net"
    if old:
        write_files(net_with_weights(), dialect().backend, stem, "old")
    before = contents(tmp_path)
    calls = 0
    replace = os.replace

    def failing_replace(source: Path, target: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise PermissionError(errno.EACCES, "Permission denied")
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing_replace)
    if not old and failing > 3:  # three files to move, none to put aside
        write_files(net_with_weights(2), dialect().backend, stem, "new")
        assert calls == 3
        return
    with pytest.raises(FileError, match="cannot write: Permission denied"):
        write_files(net_with_weights(2), dialect().backend, stem, "new")
    assert contents(tmp_path) == before


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    net = net_with_weights()
    net.layers[1].blobs = (Failing(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))),)
    with pytest.raises(FileError) as error:
        write_files(net, dialect().backend, tmp_path / "net", "")
    assert str(error.value) == f"{tmp_path}/net.caffemodel: cannot write: No space left on device"
    assert contents(tmp_path) == {}


def test_a_place_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match="cannot write"):
        write_files(small_net(), dialect().backend, tmp_path / "file" / "net", "")
    (tmp_path / "net.caffemodel").mkdir()
    with pytest.raises(FileError, match="a folder has the name"):
        write_files(small_net(), dialect().backend, tmp_path / "net", "")
    for stem in (Path(), Path("/"), tmp_path / ".."):
        with pytest.raises(UsageError, match="names no file"):
            write_files(small_net(), dialect().backend, stem, "")
    assert contents(tmp_path) == {"file": b"x", "net.caffemodel": b""}


def test_writing_does_not_import_protobuf() -> None:
    code = "import sys, caffeforge.runtime.caffe_files; sys.exit('google.protobuf' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
