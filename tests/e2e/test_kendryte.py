"""Kendryte's Caffe: its layers by our rules, and what our rules make of ops in that Caffe."""

from pathlib import Path

import pytest

from caffeforge.runtime.backends import find
from caffeforge.runtime.errors import ReadError
from caffeforge.runtime.loaded import load
from tests.e2e import inisis_cases, sophgo_cases
from tests.e2e.dialect_cases import Single, drawn, errors, of_bvlc, written
from tests.e2e.layer_cases import TOLERANCE, Random
from tests.e2e.test_bvlc_examples import check_ops
from tests.real_caffe.witness import Witness

BACKEND = find("kendryte")
NOT_RUN = {"ImageData", "Input", "MemoryData", "Silence"}  # they load data, or compute nothing


def pooling(r: Random) -> Single:
    """Say by round_mode what the Caffe of inisis says by ceil_mode."""
    case = inisis_cases.pooling(r)
    text = case.text.replace("ceil_mode: true", "round_mode: CEIL")
    return Single(case.type, text.replace("ceil_mode: false", "round_mode: FLOOR"), case.bottoms)


MAKERS = {
    make.__name__: make
    for make in (
        pooling, sophgo_cases.continuation, sophgo_cases.permute, sophgo_cases.reverse, sophgo_cases.swish,
    )
}  # fmt: skip


def test_layers_compute_what_this_caffe_computes(kendryte: Witness, tmp_path: Path) -> None:
    inherited = [c for c in of_bvlc(set(BACKEND.readers) - NOT_RUN, most=20) if "stats: false" not in c.text]
    found = errors(inherited + drawn(MAKERS, each=20), "kendryte", kendryte, tmp_path)
    assert not {kind: error for kind, error in found.items() if not error <= TOLERANCE}
    assert set(found) == set(BACKEND.readers) - NOT_RUN


def test_ops_are_computed_by_this_caffe_as_their_examples_say(kendryte: Witness, tmp_path: Path) -> None:
    assert check_ops(BACKEND, kendryte, tmp_path, inherited=True) > 200


def test_statistics_of_the_batch_are_refused(tmp_path: Path) -> None:
    r = Random(1)
    blobs = r.normal(3), r.positive(3), r.positive(1)
    case = Single("BatchNorm", "batch_norm_param { use_global_stats: false }", (r.normal(2, 3, 4),), blobs)
    with pytest.raises(ReadError, match="use_global_stats must be true"):
        load(*written([case], "kendryte", tmp_path)[:2], BACKEND)
