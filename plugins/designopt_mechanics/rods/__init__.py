"""Trees of rods of variable length in absolute angles.

A. V. Borisov, Automated designing of three-dimensional models of exoskeletons with links of variable length,
Mekhatronika, Avtomatizatsiya, Upravlenie 16 (2015) 828, DOI 10.17587/mau/16.828-835; his printed formulas are corrected
where they disagree with Lagrange's equations.

`tree.RodTree` is data. The functions of `dynamics` and `outputs` take coordinates (..., 3 n) in the order
of all azimuths, all elevations, all lengths: numbers with any leading axes, or CasADi expressions in an array of
objects. One set of formulas serves both.
"""
