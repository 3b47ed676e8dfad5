"""Signals over time: runs between gaps, filters, residual analysis, derivatives, delays, cycles."""
