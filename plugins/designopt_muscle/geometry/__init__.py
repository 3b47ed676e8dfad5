"""Muscle geometry over many frames at once: lengths, and moment arms that are their slopes."""
