"""A small case of dynamic sharing: two extensors and a flexor about one joint, with a smooth motion."""

import numpy as np
from designopt_mechanics.moment_balance import MomentBalance
from designopt_muscle.dynamic_sharing.equations import DynamicTrial
from designopt_muscle.dynamic_sharing.muscles import DynamicMuscles
from designopt_muscle.dynamic_sharing.problem import mesh
from designopt_muscle.dynamic_sharing.terms import DynamicReserves, DynamicTerms

NAMES = ("long", "short", "opposite")
ARMS = np.array([0.04, 0.03, -0.035])


def one_joint(
    intervals: int, *, scheme: str = "hermite_simpson", span: float = 0.4, phase: float = 0.0, size: float = 20.0,
    rigid: bool = False, terms: DynamicTerms | None = None, **parts,
) -> DynamicTrial:  # fmt: skip
    """A trial on a mesh of so many `intervals`; the net moment swings by `size` N m about half of it."""
    time = span * mesh(scheme, intervals).fractions
    angle = 0.3 * np.sin(7.0 * time + phase)
    rate = 2.1 * np.cos(7.0 * time + phase)
    needed = 0.5 * size + size * np.sin(5.0 * time + 0.4 + phase)
    n, k = len(time), len(NAMES)
    rest = np.array([0.32, 0.25, 0.22])
    muscles = DynamicMuscles(
        names=NAMES,
        lengths=rest - angle[:, None] * ARMS,
        speeds=-rate[:, None] * ARMS,
        force=np.array([1200.0, 900.0, 700.0]),
        optimal=np.array([0.09, 0.07, 0.1]),
        slack=np.array([0.23, 0.18, 0.12]),
        pennation=np.array([0.2, 0.1, 0.0]),
        fastest=np.full(k, 10.0),
        rigid=np.full(k, rigid),
        tendon_strain=np.full(k, 0.049),
        width=np.ones(k),
        damping=np.full(k, 0.01),
        rise=np.full(k, 0.015),
        fall=np.full(k, 0.06),
        passive_strain=np.full(k, 0.6),
        min_activation=np.full(k, 0.01),
    )
    balance = MomentBalance(time, ("joint",), NAMES, np.tile(ARMS, (n, 1, 1)), needed[:, None], ("N m",))
    terms = terms or DynamicTerms(sharpness=0.1)
    return DynamicTrial(balance, muscles, DynamicReserves(np.array([5.0]), 10.0, 100.0), terms, **parts)
