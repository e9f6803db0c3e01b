"""The collector is off while a graph is legalized, and on again afterwards, whatever happened."""

from __future__ import annotations

import gc

import pytest

from caffeforge.runtime.collector import paused


def test_it_is_off_inside_and_on_again_after_an_error() -> None:
    assert gc.isenabled()
    with pytest.raises(ValueError, match="inside"), paused():
        assert not gc.isenabled()
        raise ValueError("inside")
    assert gc.isenabled()


def test_it_stays_off_for_who_turned_it_off() -> None:
    gc.disable()
    try:
        with paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
