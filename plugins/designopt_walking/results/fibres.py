"""Fibres and tendons of a walker over the instants of a motion, with or without contact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache

from designopt.arrays import Floats
from designopt.dynamics.rows import Rows
from designopt.lazy import casadi as ca
from designopt_walking.system import stack_values
from designopt_walking.walker import Walker


@dataclass(frozen=True, eq=False)
class FibresAlong:
    """Over n instants of k muscles (n, k): `fibre_length` in optimal lengths, `tendon_strain`, and the energy
    `tendon_energy` (J) in the tendons."""

    fibre_length: Floats
    tendon_strain: Floats
    tendon_energy: Floats


def fibres_along(walker: Walker, values: Mapping[str, Floats]) -> FibresAlong:
    """The fibres of a walker whose coordinates and tendon forces have these `values` (n,) by name."""
    muscles, positions = walker.muscles, stack_values(values, walker.coordinates)
    results = _rows(walker)(positions, stack_values(values, muscles.compliant, "tendon_force_{}"))
    return FibresAlong(*(array.reshape(len(positions), len(muscles.names)) for array in results))


@lru_cache(maxsize=8)
def _rows(walker: Walker) -> Rows:
    muscles = walker.muscles
    arguments = [walker.state.z, muscles.tendon_force]
    results = [ca.SX(getattr(muscles, field.name)) for field in fields(FibresAlong)]
    return Rows(ca.Function("fibres", arguments, results), compiled=False)
