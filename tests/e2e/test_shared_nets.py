"""Nets of 39 public repositories: read as bvlc, or refused with the right place and reason.

``python -m tests.e2e.test_shared_nets`` prints for each net the dialect that reads it and infers all shapes,
among those that are shipped and those that facts are known of, or the one that objects to least in it.
"""

from __future__ import annotations

import csv
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from caffeforge.generated import ssd
from caffeforge.generated.bvlc import BACKEND
from caffeforge.runtime.backend import Backend
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.hub_from_net import hub_from_net
from caffeforge.runtime.joining import read_text
from tests import checkout
from tests.generator import dialects

FOLDER = checkout.ROOT.parent / "shared" / "nets"


def names() -> list[str]:
    """Return the nets of the index, none where it is missing."""
    if not FOLDER.exists():
        return []
    with open(FOLDER / "INDEX.tsv", encoding="utf-8") as file:
        return [row["file"] for row in csv.DictReader(file, delimiter="\t")]


def outcome(path: Path, backend: Backend = BACKEND) -> str:
    """Return how many layers were read, or the place and the reason of the refusal."""
    try:
        return f"read, {len(read_text(path, backend).net.layers)} layers"
    except CaffeforgeError as error:
        return f"{error.where.removeprefix(str(path))} {error.what}".replace(str(path), "")


def shaped(path: Path, backend: Backend) -> str:
    """Return ``all shapes``, or why the net is not read, or has no shapes, in a dialect."""
    try:
        net = read_text(path, backend).net
        hub_from_net(net, backend, seed=0)
    except CaffeforgeError as error:
        where = f"{error.where.removeprefix(str(path))} " if error.where else ""
        return f"{where}{error.what}".replace(str(path), "")
    return f"all shapes, {len(net.layers)} layers" + (
        "" if net.inputs or any(not each.bottoms for each in net.layers) else ", no input"
    )


READ = {  # layers of the net that inference needs
    "AlfredXiangWu__face_verification_experiment__LightenedCNN_A_deploy.prototxt": 22,
    "AlfredXiangWu__face_verification_experiment__LightenedCNN_B_deploy.prototxt": 37,
    "Ascend-Huawei__models__vanillacnn.prototxt": 19,
    "Hi-king__caffe_superresolution__deploy.prototxt": 6,
    "NVIDIA__caffe__deploy.prototxt": 9,
    "arrybn__opencv_extra__gtsrb.prototxt": 13,
    "facebook__C3D__alexnet_deploy.prototxt": 23,
    "facebook__C3D__lenet.prototxt": 8,
    "mrisso__featureSelectionNN__model.prototxt": 10,
    "wangxuewen99__Super-Resolution__FSRCNN_mat.prototxt": 15,
    "yahoo__CaffeOnSpark__lrcn_word_to_preds.deploy.prototxt": 5,
}
REASONS = (
    'has no field named "\\w+"',
    "has type '\\w+', unknown to bvlc",
    "no rule of bvlc tells what layer \\S+ \\(Python\\) computes",
    "no value named CROP",
    "the net names 1 inputs and gives 0 input_dim",
    "Couldn't parse integer: 224X224_1",
)


@pytest.mark.skipif(not FOLDER.exists(), reason="the nets lie beside some checkouts only")
@pytest.mark.parametrize("name", names())
def test_net_is_read_or_refused_with_its_place(name: str) -> None:
    found = outcome(FOLDER / name)
    if name in READ:
        assert found == f"read, {READ[name]} layers"
    else:
        assert re.match(r"( \d+ faults\n  )?:\d+:\d+:? .*(" + "|".join(REASONS) + ")", found), found


SHAPED = list(READ)
DETECTORS = {"PaddlePaddle__X2Paddle__deploy.prototxt": 76}


@pytest.mark.skipif(not FOLDER.exists(), reason="the nets lie beside some checkouts only")
def test_nets_that_are_read_have_shapes() -> None:
    assert {name: shaped(FOLDER / name, BACKEND) for name in SHAPED} == {
        name: f"all shapes, {READ[name]} layers" for name in SHAPED
    }
    assert {name: shaped(FOLDER / name, ssd.BACKEND) for name in DETECTORS} == {
        name: f"all shapes, {count} layers" for name, count in DETECTORS.items()
    }


def _table(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield net, dialect and outcome; dialects are generated below `folder`."""
    backends: list[Backend] = [BACKEND, ssd.BACKEND]
    backends += [
        dialects.backend(name, folder).BACKEND for name in dialects.NAMES if name not in ("bvlc", "ssd")
    ]
    for name in names():
        tried = [(backend.name, shaped(FOLDER / name, backend)) for backend in backends]
        yield name, *min(tried, key=lambda each: _faults(each[1]))


def _faults(outcome: str) -> int:
    """Return how much a dialect objects to, 0 if to nothing."""
    found = re.search(r"(\d+) faults", outcome)
    return 0 if outcome.startswith("all shapes") else int(found[1]) if found else 1


def _print(rows: Sequence[tuple[str, str, str]]) -> None:
    for name, dialect, found in rows:
        lines = [line.strip() for line in found.splitlines()]
        print(f"{name.removesuffix('.prototxt')[:60]:60} {dialect:16} {lines[0]}")
        for line in lines[1:4]:
            print(f"{'':78}{line[:150]}")
    read = sum(found.startswith("all shapes") for _, _, found in rows)
    print(f"{read} of {len(rows)} nets are read and have all shapes")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        _print(list(_table(Path(place))))
