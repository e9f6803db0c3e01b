"""Options of the generator's tests, and what they share."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options; they are known where pytest is given this folder or a file in it."""
    parser.addoption("--update", action="store_true", help="write the outputs that golden cases expect")
    parser.addoption("--every", action="store_true", help="try every line and every name, not a sample")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are written instead of compared."""
    return bool(request.config.getoption("--update", default=False))


@pytest.fixture(scope="session")
def every(request: pytest.FixtureRequest) -> bool:
    """Whether property tests try everything instead of a sample."""
    return bool(request.config.getoption("--every", default=False))
