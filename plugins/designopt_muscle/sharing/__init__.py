"""Sharing of moments among muscles: its statement, its solvers, frame by frame and over time."""
