"""Default populations that fit a budget."""

from __future__ import annotations

import math

#: A default population is this multiple of the square root of the budget, with a minimum. Measured with nsga2 on ZDT1
#: to 3, DTLZ2, BNH, OSY and Kursawe's problem at 100 to 1000 evaluations: the hypervolume is largest with 12 to 20
#: designs at 200 evaluations and 20 to 30 at 500, for 3 and for 30 parameters; with 100 it is less than half of that.
ROOTS, SMALLEST = 1.2, 12


def population(evaluations: int, most: int) -> int:
    """The population for a budget of `evaluations`; `most` is the solver's own default."""
    return max(2, min(most, max(SMALLEST, round(ROOTS * math.sqrt(evaluations))), evaluations))
