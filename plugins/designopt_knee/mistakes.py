"""What a table of recorded angles may have wrong: columns with the opposite sign, of the other leg, or exchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from designopt.arrays import Floats

#: Samples of one cycle, both ends included, by link or joint.
Angles = Mapping[str, Floats]

#: Joints whose angle is that of the first link less that of the second.
LINKS_OF = {"knee": ("thigh", "shank"), "ankle": ("foot", "shank")}
#: Angles from which the others are computed: of thigh and joints, or of links.
CHAINS = (("thigh", "knee", "ankle"), ("thigh", "shank", "foot"))

LEAST_FLEXION = 15.0  # deg: a knee that bends less in the whole cycle does not walk
_ANKLE_RANGE = 60.0  # deg

_POSITIVE = {
    "thigh": "lower end forward", "shank": "lower end forward", "foot": "toe up", "knee": "flexion", "ankle": "toe up",
    "hip_x": "forward",
}  # fmt: skip


@dataclass(frozen=True)
class Mistake:
    """A clause that names it, and the correction of the columns that have it."""

    clause: str
    correction: Callable[[Angles], dict[str, Floats]]


def mistakes_in(names: Sequence[str]) -> Iterator[Mistake]:
    """Possible mistakes in the columns `names`, those in few columns first."""
    for count in range(1, len(names) + 1):
        for columns in combinations(names, count):
            yield reversed_in(columns)
            if count < len(names):
                clause = f"{column_names(columns)}, half a cycle off, {'is' if count == 1 else 'are'} of the other leg"
                yield Mistake(f"{clause}; take those of this leg", _each(columns, _half_off))
            if count == 2:
                yield exchanged(*columns)


def reversed_in(names: Sequence[str]) -> Mistake:
    """The opposite sign in the columns `names`."""
    is_single = len(names) == 1
    positive = ", ".join(dict.fromkeys(_POSITIVE[name] for name in names))
    clause = (
        f"{column_names(names)} {'has' if is_single else 'have'} the opposite sign (positive: {positive}); reverse"
        f" {'it' if is_single else 'them'}"
    )
    return Mistake(clause, _each(names, np.negative))


def exchanged(first: str, second: str) -> Mistake:
    """The columns `first` and `second` under each other's name."""
    return Mistake(
        f"{column_names((first, second))} are exchanged; exchange them again",
        lambda angles: {first: angles[second], second: angles[first]},
    )


def cause_of_contradiction(angles: Angles, tolerance: float) -> str:
    """The mistake in fewest columns without which all angles of joints have the shape of those of their links, within
    the `tolerance` (deg), and are those of a person; "" if there is none."""
    for mistake in mistakes_in(tuple(angles)):
        angles_if_right = {**angles, **mistake.correction(angles)}
        if (
            _are_of_a_person(angles_if_right)
            and max(shapes_apart(angles_if_right, joint) for joint in LINKS_OF) <= tolerance
        ):
            return mistake.clause
    return ""


def _are_of_a_person(angles: Angles) -> bool:
    """Whether the knee bends forward only, and the ankle turns less than a link."""
    knee = angles["knee"]
    return bool(knee.max() > LEAST_FLEXION and knee.min() > -LEAST_FLEXION and np.ptp(angles["ankle"]) < _ANKLE_RANGE)


def apart(angles: Angles, joint: str) -> Floats:
    """The angle of a joint less that between its links."""
    upper, lower = LINKS_OF[joint]
    return np.asarray(angles[joint] - (angles[upper] - angles[lower]))


def shapes_apart(angles: Angles, joint: str) -> float:
    """Largest difference between the angle of a joint and that between its links, without a constant one."""
    difference = apart(angles, joint)
    return float(np.abs(difference - difference.mean()).max())


def column_names(names: Sequence[str]) -> str:
    """The columns in a sentence."""
    *first, last = (f"{name}_m" if name.startswith("hip") else f"{name}_deg" for name in names)
    return f"{', '.join(first)} and {last}" if first else last


def _each(names: Sequence[str], correction: Callable[[Floats], Floats]) -> Callable[[Angles], dict[str, Floats]]:
    return lambda angles: {name: correction(angles[name]) for name in names}


def _half_off(values: Floats) -> Floats:
    cycle = np.roll(values[:-1], len(values) // 2)
    return np.append(cycle, cycle[0])
