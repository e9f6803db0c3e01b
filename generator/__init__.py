"""The generator: schemas in, the text of typed Python packages out. Pure, and imports no torch."""
