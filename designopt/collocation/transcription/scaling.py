"""Scales of variables: a tolerance is a share of a variable's range."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from designopt.arrays import Floats, Integers
from designopt.collocation.statement.checks import check_names
from designopt.collocation.transcription.boxes import ProgramBounds
from designopt.collocation.transcription.functions.functions import ProblemFunctions
from designopt.collocation.transcription.mesh.layout import Layout

#: Range beyond which a box does not indicate the size of a variable.
WIDEST = 1e6


def scales(
    statement: ProblemFunctions, places: Layout, boxes: ProgramBounds, guess: Floats, stated: Mapping[str, float]
) -> tuple[Floats, Floats]:
    """Scale and shift (n,) of all variables: half the range and its middle if the box is finite and at most `WIDEST`,
    else the largest guess, at least 1, and 0. Integrals have the size of their guess. The scales of a phase, and before
    them `stated` ones, by name, take precedence; those of free times are t0 and tf, for all phases.
    """
    scale, shift = np.ones(places.size), np.zeros(places.size)
    named = set()
    for i, layout in enumerate(places.phases):
        point = statement.points[i]
        of_phase = {**point.phase.scales, **stated}
        check_names(f"{point.phase.name}: scales", point.phase.scales, [*point.names, "t0", "tf"], "variable")
        for j, name in enumerate(point.names):
            where = layout.states[:, j] if j < point.nx else layout.point[:, j]
            named.add(name)
            # the ends may have boxes of their own
            inner = where[1:-1] if len(where) > 2 else where
            _set(scale, shift, where, boxes.low[inner[0]], boxes.high[inner[0]], guess[where], of_phase.get(name))
        for name, index in (("t0", layout.t0), ("tf", layout.tf)):
            if index >= 0:
                named.add(name)
                one = np.array([index])
                _set(scale, shift, one, boxes.low[index], boxes.high[index], guess[one], of_phase.get(name))
    for name, index in places.parameters.items():
        named.add(name)
        one = np.array([index])
        _set(scale, shift, one, boxes.low[index], boxes.high[index], guess[one], stated.get(name))
    for index in places.integrals.values():
        one = np.array([index])
        _set(scale, shift, one, -np.inf, np.inf, guess[one], None)
    check_names("scales", stated, sorted(named), "variable")
    return scale, shift


def _set(
    scale: Floats, shift: Floats, where: Integers, low: float, high: float, guess: Floats, stated: float | None
) -> None:
    if stated is not None:
        scale[where] = stated
    elif np.isfinite(low) and np.isfinite(high) and 0.0 < high - low <= WIDEST:
        scale[where], shift[where] = 0.5 * (high - low), 0.5 * (high + low)
    else:
        scale[where] = max(1.0, float(np.abs(guess).max()))
