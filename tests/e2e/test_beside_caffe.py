"""All backends live in one process beside an installed caffe and OpenCV, in pools of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from grpc_tools import protoc

from caffeforge.generator.generate import write
from caffeforge.generator.schema_folder import SCHEMAS
from caffeforge.runtime import backends
from tests.checkout import ROOT
from tests.generator import dialects

VENDORS = ("nart_caffe", "ascend_ge", "openvino_dev_2022.3")
PROGRAM = Path(__file__).with_name("beside_caffe.py")


@pytest.fixture(scope="module")
def caffe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a package ``caffe`` as pycaffe has it, for the default pool."""
    home = tmp_path_factory.mktemp("pycaffe")
    (home / "caffe" / "proto").mkdir(parents=True)
    for folder in (home / "caffe", home / "caffe" / "proto"):
        (folder / "__init__.py").touch()
    arguments = [f"-I{SCHEMAS / 'bvlc'}", f"--python_out={home / 'caffe' / 'proto'}", "caffe.proto"]
    assert protoc.main(["protoc", *arguments]) == 0
    return home


@pytest.fixture(scope="module")
def vendors(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return packages of vendors' protos alone, whose messages are of various packages."""
    folder = tmp_path_factory.mktemp("vendors")
    packages = [dialects.package(name, folder) for name in VENDORS if name in dialects.NAMES]
    for package in packages:
        write(package, folder / "out")
    return [folder / "out" / package.name for package in packages]


@pytest.mark.parametrize("order", ["first", "last"])
def test_all_backends_work_in_one_process_beside_caffe(
    order: str, caffe: Path, vendors: list[Path], tmp_path: Path
) -> None:
    further = vendors if order == "first" else []
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(caffe), str(tmp_path), order, *map(str, further)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "tests" / "_ns"), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{len(backends.names()) + len(further)} backends beside caffe")
