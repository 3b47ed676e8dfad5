"""Muscles: sharing of moments, curves, models and geometry."""
