"""Nets of 39 public repositories: read as bvlc, or refused with the right place and reason.

``python -m tests.e2e.test_shared_nets`` prints the table.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from caffeforge.generated.bvlc import BACKEND
from caffeforge.runtime.errors import CaffeforgeError
from caffeforge.runtime.joining import read_text
from tests import checkout

FOLDER = checkout.ROOT.parent / "shared" / "nets"


def names() -> list[str]:
    """Return the nets of the index, none where it is missing."""
    if not FOLDER.exists():
        return []
    with open(FOLDER / "INDEX.tsv", encoding="utf-8") as file:
        return [row["file"] for row in csv.DictReader(file, delimiter="\t")]


def outcome(path: Path) -> str:
    """Return how many layers were read, or the place and the reason of the refusal."""
    try:
        return f"read, {len(read_text(path, BACKEND).net.layers)} layers"
    except CaffeforgeError as error:
        return f"{error.where.removeprefix(str(path))} {error.what}".replace(str(path), "")


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


if __name__ == "__main__":
    for each in names():
        print(f"{each:92} {outcome(FOLDER / each)}")
