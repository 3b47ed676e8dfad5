"""Which tendons of a walker are compliant, and first trajectories of their forces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from designopt_muscle.osim.model import OsimModel

from designopt.arrays import Floats
from designopt.collocation import PhaseGuess
from designopt.dynamics.rows import Rows
from designopt.lazy import casadi as ca
from designopt.plugin import Quantity as Q
from designopt_walking.muscles import muscle_states
from designopt_walking.programs.gait import GaitError, plain
from designopt_walking.system import stack_values
from designopt_walking.walker import Walker

#: Strains at the maximum isometric force between which a tendon may be compliant: stiffer ones are rigid for any mesh,
#: tendons of this length would tear.
STRAINS = (0.002, 0.3)
#: Least first force of a tendon, in maximum isometric forces: the interior of its range.
LEAST_FORCE = 0.01
#: The settings of models, and their types.
TENDON_SETTINGS = ("tendons", "rigid_tendons", "tendon_strains")
TendonKind = Annotated[
    Literal["rigid", "compliant"], Q("", "rigid, or compliant: stretched by their forces, which are states then")
]
RigidTendons = Annotated[
    list[str] | None,
    Q("", "muscles with rigid tendons, with or without the side; default: if shorter than the optimal fibre"),
]
TendonStrains = Annotated[
    dict[str, float],
    Q("", "at the maximum isometric force by muscle, with or without the side, instead of those of the model (0.049)"),
]


@dataclass(frozen=True)
class Tendons:
    """The tendons of a walker: all rigid, or compliant but for the muscles `rigid`, by name with or without the side.

    Without a list tendons that are shorter than the optimal fibre stay rigid: with the usual strain they stretch by
    less than 5 % of its length at the maximum isometric force, and make the equations stiff. `strains` at that force,
    by muscle, replace those of the model.
    """

    kind: TendonKind = "rigid"
    rigid: Sequence[str] | None = None
    strains: Mapping[str, float] = field(default_factory=dict)

    def applied_to(self, model: OsimModel) -> tuple[OsimModel, tuple[str, ...]]:
        """The model with these strains, and the names of its muscles with compliant tendons.

        Raises `GaitError` for unknown muscles, strains outside `STRAINS`, and lists that rigid tendons would ignore.
        """
        if self.kind == "rigid":
            for name, has_setting in (
                ("rigid_tendons", self.rigid is not None),
                ("tendon_strains", bool(self.strains)),
            ):
                if has_setting:
                    raise GaitError(name, "all tendons are rigid; set 'tendons: compliant', or leave this out")
            return model, ()
        for name, muscles in (("rigid_tendons", self.rigid or ()), ("tendon_strains", self.strains)):
            for muscle in muscles:
                if not any(muscle in (m.name, plain(m.name)) for m in model.muscles):
                    muscle_names = ", ".join(dict.fromkeys(plain(m.name) for m in model.muscles)) or "none"
                    raise GaitError(name, f"'{muscle}' is no muscle; the model has {muscle_names}")
        new_muscles = [
            replace(m, shape={**m.shape, "tendon_strain_at_one_norm_force": self.strains[key]})
            if (key := m.name if m.name in self.strains else plain(m.name)) in self.strains
            else m
            for m in model.muscles
        ]
        compliant = [
            m
            for m in new_muscles
            if (m.slack >= m.fibre if self.rigid is None else not {m.name, plain(m.name)} & {*self.rigid})
        ]
        for m in compliant:
            if not STRAINS[0] <= m.tendon_strain <= STRAINS[1]:
                raise GaitError(
                    "tendon_strains",
                    f"the tendon of '{m.name}' has the strain {m.tendon_strain:g} at its maximum isometric force;"
                    f" possible are {STRAINS[0]:g} to {STRAINS[1]:g} (usual: 0.03 to 0.1), or a rigid tendon"
                    " ('rigid_tendons')",
                )
        return replace(model, muscles=tuple(new_muscles)), tuple(m.name for m in compliant)


def with_tendon_forces(walker: Walker, trajectories: PhaseGuess) -> PhaseGuess:
    """First `trajectories` with the forces of the compliant tendons of a `walker`: those that they lack are what rigid
    tendons would have in these coordinates, speeds and activations."""
    forces = {f"tendon_force_{name}" for name in walker.muscles.compliant}
    if forces <= trajectories.at(np.zeros(1)).keys():
        return trajectories
    return _OnRigidTendons(walker, trajectories)


@dataclass(frozen=True, eq=False)
class _OnRigidTendons:
    """`trajectories` with rigid tendons as a guess for a `walker` with compliant ones."""

    walker: Walker
    trajectories: PhaseGuess

    @property
    def t0(self) -> float:
        """See `PhaseGuess`."""
        return self.trajectories.t0

    @property
    def tf(self) -> float:
        """See `PhaseGuess`."""
        return self.trajectories.tf

    def at(self, fractions: Floats) -> Mapping[str, Floats]:
        """See `PhaseGuess.at`."""
        values, muscles, coordinates = self.trajectories.at(fractions), self.walker.muscles, self.walker.coordinates
        (forces,) = _rigid_forces(self.walker)(
            stack_values(values, coordinates),
            stack_values(values, coordinates, "{}_speed"),
            stack_values(values, muscles.names, "activation_{}"),
        )
        forces = np.maximum(forces, LEAST_FORCE)
        return {**{f"tendon_force_{name}": forces[:, muscles.index(name)] for name in muscles.compliant}, **values}


@lru_cache(maxsize=8)
def _rigid_forces(walker: Walker) -> Rows:
    """Forces along the tendons of all muscles of a walker in maximum isometric forces, if all tendons were rigid."""
    lengths: dict[str, Any] = {name: walker.muscles.length[i] for i, name in enumerate(walker.muscles.names)}
    rigid = muscle_states(walker.state, walker.muscles.muscles, lengths)
    relative = rigid.force / ca.SX([m.force for m in rigid.muscles])
    arguments = [walker.state.z, walker.state.dz, rigid.activation]
    return Rows(ca.Function("rigid_forces", arguments, [relative]), compiled=False)
