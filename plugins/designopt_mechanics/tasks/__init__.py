"""The model `mechanism` and its tasks: inverse dynamics, simulation, equilibrium, trajectory, kinematics."""
