"""The entries of the error catalog, by what they are about."""
