"""Searches through SciPy: local ones, from a design to the nearest optimum, and global ones for one objective.

They work in coordinates from 0 to 1 over the range of each parameter (of its logarithm on a log scale). Local ones move
real parameters only; in global ones whole numbers and choices are rounded when a design is made. Those without
derivatives compare designs by order: feasible ones by the objective, then infeasible ones by how far they pass limits,
then invalid, then failed ones. A design that was asked for before costs nothing. All end by themselves, and say why.
"""
