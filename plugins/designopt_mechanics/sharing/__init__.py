"""Sharing of moments among wires and muscles, frame by frame: its statement and its solvers."""
