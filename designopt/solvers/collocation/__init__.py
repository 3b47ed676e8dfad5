"""The solver `collocation`: motion and free parameters of a study are unknowns of one sparse program."""
