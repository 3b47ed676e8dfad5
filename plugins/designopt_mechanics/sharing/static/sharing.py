"""Result of sharing: activations, forces and the status of every frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from designopt_recordings.frames import count_statuses

from designopt.arrays import Floats, Integers, Mask
from designopt_mechanics.moment_balance import MomentBalance
from designopt_mechanics.sharing.muscles import Muscles
from designopt_mechanics.sharing.statement.formulation import Formulation
from designopt_mechanics.sharing.status import SharingStatus


@dataclass(frozen=True, eq=False)
class Sharing:
    """Forces of k muscles in n frames that balance m rows; NaN in frames without a solution.

    `balance` and `muscles` are what was shared, with the rows that were balanced; `left_out` names rows that no muscle
    crosses and no reserve helps. `status` (n,) holds `SharingStatus`. `activations` (n, k), `forces` (n, k) N along
    the tendon, active and passive; `reserves` (n, m) the generalised forces of reserves; `multipliers` (n, m) of the
    rows: the change of the cost for a unit more of the needed moment. `cost` (n,).

    In an infeasible frame activations leave the least-squares `shortfall` (n, m), 0 in others; `proof` (n, m) is the
    combination of rows that is short, by `deficit` (n,); `strength_factor` (n,) is the least factor on all muscle
    forces that makes the frame feasible, 1 in feasible frames, infinite where none is enough.

    `residual` (n,) is the largest error of a balance, `stationarity` (n,) of the optimality conditions, both relative;
    `iterations` (n,). `scales` (k,) are the scales of tracked signals. `formulation` has the numbers of the solved
    `frames` (indices), `variables` (s, v) and `scaled_multipliers` (s, m) their solution, for derivatives; known
    where the problem is `separable`: a sum over the muscles of single frames.
    """

    balance: MomentBalance
    muscles: Muscles
    left_out: tuple[str, ...]
    status: Integers
    activations: Floats
    forces: Floats
    reserves: Floats
    multipliers: Floats
    cost: Floats
    shortfall: Floats
    proof: Floats
    deficit: Floats
    strength_factor: Floats
    residual: Floats
    stationarity: Floats
    iterations: Integers
    scales: Floats
    formulation: Formulation
    frames: Integers
    variables: Floats
    scaled_multipliers: Floats
    separable: bool

    @property
    def feasible(self) -> Mask:
        """(n,) whether the activations balance the frame."""
        return np.asarray(self.status < 100)

    @property
    def moments(self) -> Floats:
        """(n, m, k) the generalised force of each muscle on each row."""
        return np.asarray(self.balance.arms * self.forces[:, None, :])

    def summary(self) -> str:
        """One or two sentences: how many frames could not be balanced, when, and their shortfall."""
        n = len(self.status)
        counts = count_statuses(self.status, SharingStatus)
        lines = [f"{int(self.feasible.sum())} of {n} frames balanced"]
        short = np.flatnonzero(self.status == SharingStatus.INFEASIBLE)
        if len(short):
            time = self.balance.time[short]
            largest = np.abs(self.shortfall[short]).max(axis=0)
            rows = [i for i in np.argsort(-largest, kind="stable") if largest[i] > 1e-6 * largest.max()]
            shortfalls = ", ".join(
                f"{self.balance.rows[i]} by up to {largest[i]:.3g} {self.balance.row_units[i]}" for i in rows
            )
            factor = float(self.strength_factor[short].max())
            remedy = (
                f"{factor:.3g} times the strength would be sufficient"
                if np.isfinite(factor)
                else "no strength is sufficient"
            )
            lines.append(
                f"{len(short)} of {n} frames infeasible, {time[0]:.4g} s to {time[-1]:.4g} s: short: "
                f"{shortfalls}; {remedy}"
            )
        for status, count in counts.items():
            if status not in (SharingStatus.OPTIMAL, SharingStatus.INFEASIBLE):
                lines.append(f"{count} frames {status.name.lower()}: {status.sentence}")
        if self.left_out:
            lines.append(f"not shared, because no muscle crosses them: {', '.join(self.left_out)}")
        return "; ".join(lines)
