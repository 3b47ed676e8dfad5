"""Gaps of markers: interpolated in time, rebuilt from the other markers of a cluster, reported."""
