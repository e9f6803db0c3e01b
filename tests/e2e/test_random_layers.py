"""Random single layers: what our executor computes is what real Caffe does, for every type of inference."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.e2e.layer_audit import cases, errors, types
from tests.e2e.layer_cases import TOLERANCE
from tests.real_caffe.witness import Witness


def test_each_type_has_thirty_settings_of_odd_and_even_sizes() -> None:
    made = cases(0)
    assert sorted(made) == types()
    for kind, settings_ in made.items():
        assert len(settings_) >= 30, kind
        sizes = {size for case in settings_ for array in (*case.bottoms, *case.blobs) for size in array.shape}
        assert kind == "DummyData" or {size % 2 for size in sizes} == {0, 1}, kind


@settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(series=st.integers(1, 2**32 - 1))
def test_other_settings(series: int, caffe: Witness, tmp_path: Path) -> None:
    found = errors(cases(series), caffe, tmp_path)
    assert not {kind: error for kind, error in found.items() if not error <= TOLERANCE}, series
    assert sorted(found) == types()
