"""The solver `collocation`: trajectories and free parameters of a study are the variables of one sparse program."""
