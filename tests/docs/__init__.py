"""Tests that what the documentation says and shows is so."""
