"""Motions as trajectory problems: predicted, tracked and synthetic walks, standing up from a squat."""
