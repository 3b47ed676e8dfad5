"""The first mesh of a phase: equal intervals, nodes where controls are held anew and where delays bend a motion."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from designopt.collocation.statement.problem import Phase
from designopt.collocation.statement.scheme import Scheme
from designopt.collocation.transcription.delays import SAME, share
from designopt.collocation.transcription.mesh import Mesh

Vector = NDArray[np.float64]

#: A motion bends once more smoothly after each delay: kinks of a higher derivative than this are no matter.
BENDS = 6


def first_mesh(phase: Phase, scheme: Scheme, intervals: int) -> Mesh:
    """About so many `intervals`, not fewer: whole ones in each piece of held controls, and between kinks of delays."""
    pieces = math.lcm(*phase.pieces.values())
    if not phase.delays:
        return Mesh.uniform(scheme, pieces * math.ceil(intervals / pieces))
    edges = _edges(phase, pieces, intervals)
    counts = np.ceil(np.diff(edges) * intervals - SAME).astype(int)
    parts = [np.linspace(a, b, n, endpoint=False) for a, b, n in zip(edges, edges[1:], counts, strict=False)]
    return Mesh.at(scheme, np.concatenate([*parts, [1.0]]))


def _edges(phase: Phase, pieces: int, most: int) -> Vector:
    """Ends of pieces and the sums of delays from there, order after order, while they are no more than `most`.

    The history ends in a kink at the start; the costates, which look forward, have one at the end.
    """
    shares = sorted({share(phase, delay) for delay in phase.delays.values()})
    found = forward = _distinct(np.linspace(0.0, 1.0, pieces + 1))
    backward = np.array([1.0])
    for _ in range(BENDS):
        forward = _distinct(np.add.outer(forward, shares).ravel())
        backward = _distinct(np.subtract.outer(backward, shares).ravel())
        more = _distinct(np.concatenate([found, forward, backward]))
        if len(more) > max(most, len(found)) + 1:
            break
        found = more
    found[0], found[-1] = 0.0, 1.0
    return found


def _distinct(fractions: Vector) -> Vector:
    """Those within the phase, in their order, each once."""
    fractions = np.sort(fractions[(fractions > -SAME) & (fractions < 1.0 + SAME)])
    return fractions[np.concatenate([[True], np.diff(fractions) > SAME])] if len(fractions) else fractions
