"""Surfaces that wires and muscles run over: the shortest paths around them, as arrays and as expressions."""
