"""What is shared: criteria, costs, limits, and the numbers that solvers take."""
