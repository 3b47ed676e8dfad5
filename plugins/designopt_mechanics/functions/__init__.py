"""Joint functions: joint variables as functions of the coordinates, each twice differentiable."""
