"""Inverse and forward dynamics in natural coordinates."""
