"""The rest of a study whose one section a page shows."""

#: What a study needs besides a section that is shown by itself.
REST = {
    "study": "shown",
    "model": {"use": "four_bar_knee"},
    "space": {"stiffness": [12e3, 30e3], "damping_ratio": [0.02, 0.12]},
    "objectives": [{"name": "mismatch", "minimize": "1 - rho"}],
    "stages": [{"name": "look", "solver": {"use": "full_factorial", "levels": 2}}],
}
