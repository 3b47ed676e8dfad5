"""The sharing problem: criteria, costs, limits, and the numbers for the solvers."""
