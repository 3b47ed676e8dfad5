"""Curves over normalised cycles: foot strikes, values, statistics."""
