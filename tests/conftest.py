"""Fixtures that tests of several parts share."""

import os

import pytest

from tests.real_caffe.witness import CAFFE, KENDRYTE, SOPHGO, Witness

WITNESS_FIXTURES = {"caffe", "kendryte", "sophgo"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that run a real Caffe."""
    for item in items:
        if WITNESS_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("real_caffe")


@pytest.fixture(scope="session")
def caffe() -> Witness:
    """Real Caffe; where it is missing the test is skipped, or fails if CAFFEFORGE_REQUIRE_CAFFE=1."""
    return _witness(CAFFE, required=os.environ.get("CAFFEFORGE_REQUIRE_CAFFE") == "1")


@pytest.fixture(scope="session")
def kendryte() -> Witness:
    """A second real Caffe, from 2020; where it is missing the test is skipped."""
    return _witness(KENDRYTE, required=False)


@pytest.fixture(scope="session")
def sophgo() -> Witness:
    """A vendor's Caffe with many layers of the community; where it is missing the test is skipped."""
    return _witness(SOPHGO, required=False)


def _witness(witness: Witness, *, required: bool) -> Witness:
    if not witness.available:
        reason = f"{witness.name} is not installed; {witness.installer} installs it"
        if required:
            pytest.fail(reason)
        pytest.skip(reason)
    return witness
