"""Forward dynamics: five formulations of the constrained equations of motion and their integrators."""
