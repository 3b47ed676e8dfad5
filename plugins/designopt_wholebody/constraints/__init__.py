"""Constraints of natural coordinates, all in one quadratic representation."""
