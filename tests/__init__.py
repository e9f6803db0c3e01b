"""The tests, by part; what several parts share is imported as ``tests.*``."""
