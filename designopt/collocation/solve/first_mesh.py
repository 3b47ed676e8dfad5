"""First mesh of a phase: equal intervals, with nodes where held controls change and at delays from one another.

A control may jump at every node. A delayed control jumps a delay later, and between nodes no error estimate detects it:
the mesh therefore repeats the nodes of delayed controls and algebraic variables a delay later, however many these are.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from designopt.arrays import Indices, Vector
from designopt.collocation.statement.problem import Phase
from designopt.collocation.statement.scheme import Scheme
from designopt.collocation.statement.stated_values import ProblemError
from designopt.collocation.transcription.mesh.delays import SAME, share
from designopt.collocation.transcription.mesh.mesh import Mesh

#: Maximum ratio of intervals to the requested ones with delays, so that each is a delay later than another interval.
MORE = 4
#: Otherwise: a motion becomes smoother after each delay, and kinks in derivatives higher than this are ignored.
BENDS = 6
#: Maximum intervals for delayed controls: this number, or this multiple of the requested ones.
MOST, MOST_TIMES = 2000, 20


def first_mesh(phase: Phase, scheme: Scheme, intervals: int) -> Mesh:
    """At least `intervals`: a whole number in each piece of held controls, and between kinks of delays.

    Raises `ProblemError` (bad_statement) if delays of controls need too many.
    """
    pieces = math.lcm(*phase.pieces.values())
    if not phase.delays:
        return Mesh.uniform(scheme, pieces * math.ceil(intervals / pieces))
    most = max(MOST, MOST_TIMES * intervals)
    edges = _with_later(phase, _edges(phase, pieces, intervals), most)
    counts = np.ceil(np.diff(edges) * intervals - SAME).astype(int)
    parts = [np.linspace(a, b, n, endpoint=False) for a, b, n in zip(edges, edges[1:], counts, strict=False)]
    return Mesh.at(scheme, _with_later(phase, np.concatenate([*parts, [1.0]]), most))


def with_later_nodes(phase: Phase, mesh: Mesh) -> Mesh:
    """`mesh` with additional nodes where delayed controls jump."""
    nodes = _with_later(phase, mesh.nodes, MOST * len(mesh))
    if len(nodes) == len(mesh.nodes):
        return mesh
    within, _ = mesh.interval_of(0.5 * (nodes[1:] + nodes[:-1]))
    return Mesh(nodes, tuple(mesh.schemes[k] for k in within))


def _jumping(phase: Phase) -> list[float]:
    """Delays, as shares of the phase below 1, of variables that may jump: states are continuous."""
    states = {v.name for v in phase.system.states}
    shares = {share(phase, delay) for delay in phase.delays.values() if delay.variable not in states}
    return sorted(each for each in shares if each < 1.0 - SAME)


def _with_later(phase: Phase, nodes: Vector, most: int) -> Vector:
    """`nodes` and all sums of delays of controls from them. Raises `ProblemError` for more than `most` intervals."""
    shares, nodes_with_later = _jumping(phase), nodes
    while shares:
        more = _distinct(np.concatenate([nodes_with_later, *(nodes_with_later + s for s in shares)]))
        more[0], more[-1] = 0.0, 1.0
        if len(more) == len(nodes_with_later):
            break
        if len(more) > most + 1:
            text = (
                "a delayed control needs intervals no longer than its delay, and each node again one delay later:"
                f" more than {most} intervals here. Remove such a short delay, or make one delay a multiple of"
                " the other"
            )
            raise ProblemError("bad_statement", f"{phase.name}: delays", text)
        nodes_with_later = more
    return nodes_with_later


def _edges(phase: Phase, pieces: int, intervals: int) -> Vector:
    """Ends of pieces and the sums of delays from there and back from the end, all of them if they are few.

    Then every interval is an earlier one shifted by a delay: delayed values are read at its own points, not between
    them, where controls may pass their limits. The history ends in a kink at the start; the costates, which depend on
    later times, have one at the end. If the sums are many, as for delays without a common step, only those after the
    first few delays are used: delayed controls jump at least one delay before the end, which no error estimate detects.
    """
    shares, jumps = _shares(phase), bool(_jumping(phase))
    most = max(MOST, MOST_TIMES * intervals) if jumps else MORE * intervals
    edge_fractions = few = _distinct(np.linspace(0.0, 1.0, pieces + 1))
    for order in itertools.count(1):
        more = _distinct(
            np.concatenate(
                [edge_fractions, *(edge_fractions + s for s in shares), *(edge_fractions - s for s in shares)]
            )
        )
        if len(more) == len(edge_fractions):
            break
        if len(more) > most + 1:
            edge_fractions = few
            break
        edge_fractions = more
        if (jumps and order == 1) or (order <= BENDS and len(edge_fractions) <= max(intervals, len(few)) + 1):
            few = edge_fractions
    edge_fractions[0], edge_fractions[-1] = 0.0, 1.0
    return edge_fractions


def errors_with_delays(phase: Phase, mesh: Mesh, errors: Vector) -> Vector:
    """The `errors` (N,) of intervals, made equal for those a delay apart: they are then divided alike."""
    shares = _shares(phase)
    earlier = [_moved(mesh, s) for s in shares]
    equalised = errors
    while True:
        before, equalised = equalised, equalised.copy()
        for later, first in earlier:
            equalised[later] = np.maximum(equalised[later], equalised[first])
            equalised[first] = np.maximum(equalised[first], equalised[later])
        if (equalised == before).all():
            return equalised


def _moved(mesh: Mesh, by: float) -> tuple[Indices, Indices]:
    """Intervals of `mesh`, and those earlier by the delay `by`, if these have the same width and scheme."""
    middles = 0.5 * (mesh.nodes[:-1] + mesh.nodes[1:]) - by
    later = np.flatnonzero(middles > 0.0)
    first = mesh.interval_of(middles[later])[0]
    same = np.abs(mesh.nodes[first] + by - mesh.nodes[later]) < SAME
    same &= np.abs(mesh.nodes[first + 1] + by - mesh.nodes[later + 1]) < SAME
    same &= np.array([mesh.schemes[i] is mesh.schemes[k] for i, k in zip(first, later, strict=True)], bool)
    return later[same], first[same]


def _shares(phase: Phase) -> list[float]:
    return sorted({share(phase, delay) for delay in phase.delays.values()})


def _distinct(fractions: Vector) -> Vector:
    """Distinct fractions within the phase, in increasing order."""
    fractions = np.sort(fractions[(fractions > -SAME) & (fractions < 1.0 + SAME)])
    return fractions[np.concatenate([[True], np.diff(fractions) > SAME])] if len(fractions) else fractions
