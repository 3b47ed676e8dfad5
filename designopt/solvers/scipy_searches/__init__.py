"""Searches through SciPy: local ones, which find the optimum nearest to their start, and global ones for one objective.

They work in coordinates from 0 to 1 over the range of each parameter (of its logarithm on a log scale). Local ones move
real parameters only; global ones round integers and choices when a design is made. Searches without derivatives compare
designs by order: feasible ones by objective, then infeasible ones by violation, then invalid, then failed ones. A
repeated design costs nothing. All end by themselves and report why.
"""
