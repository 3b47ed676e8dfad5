"""The model ``four_bar_knee_branch``: motions of period T over the damper's stiffness, for one damping.

The motion of period T at the highest stiffness is continued downwards until it loses its stability, and root finding
encloses the critical stiffness. A grid of walks resolves it only to its step of some hundreds of N/m.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Annotated, TypedDict, cast

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import Array, Diverged, InvalidSetting, Quantity, model
from designopt_knee.model import FourBarKnee, initial_states, leg_conditions
from designopt_knee.outputs import KneeOutputs
from designopt_knee.parameters import EQUATION_PARAMETERS, WALK, DampingDesign, KneeConditions, complete
from designopt_knee.periodic import BODIES

if TYPE_CHECKING:
    from designopt.dynamics.simulation.side_by_side import OverRuns
    from designopt_knee.periodic.strides import Strides

Q = Quantity

#: How stability is lost, and which contact changes there, as the numbers that `loss` and `loss_contact` give.
LOSSES = (None, "flip", "fold", "torus", "contact", "unknown")
CONTACTS = (None, *BODIES)


class BranchOutputs(TypedDict):
    """Outputs for the stable motions of period T, from the highest stiffness down."""

    critical_stiffness: Annotated[
        float, Q("N/m", "stiffness at which the motion loses its stability; lowest_stiffness if it does not")
    ]
    loss: Annotated[
        float,
        Q(
            "",
            "how: 1 period doubles, 2 fold, 3 torus, 4 a contact begins or ends, 5 unknown; 0 not lost in the range",
        ),
    ]
    loss_contact: Annotated[
        float,
        Q("", "contact that only one of this motion and the one beyond has: 1 heel, 2 toe, 3 stop; 0 none"),
    ]
    loss_phase: Annotated[float, Q("", "phase of that contact in the cycle; 0 without one")]
    critical_multiplier: Annotated[float, Q("", "largest multiplier of the last stable motion, real part")]
    best_rho: Annotated[float, Q("", "largest correlation with the recorded knee angle")]
    best_stiffness: Annotated[float, Q("N/m", "where it is reached")]
    best_peak: Annotated[float, Q("deg", "largest knee angle there")]
    best_clearance: Annotated[float, Q("m", "lowest toe in swing there")]
    robust_low: Annotated[
        float, Q("N/m", "lower end of the stiffnesses around it at which rho falls by no more than rho_margin")
    ]
    robust_high: Annotated[float, Q("N/m", "upper end of these")]
    robust_width: Annotated[float, Q("N/m", "width of that interval")]


ARRAYS = {
    "branch_stiffness": Array(("motion",), "N/m", "falling"),
    "branch_rho": Array(("motion",), "", "correlation with the recorded knee angle"),
    "branch_peak": Array(("motion",), "deg", "largest knee angle"),
    "branch_clearance": Array(("motion",), "m", "lowest toe in swing"),
    "branch_multiplier": Array(("motion",), "", "largest multiplier, real part"),
    "branch_modulus": Array(("motion",), "", "largest multiplier, size"),
}


@model("four_bar_knee_branch", version=3, arrays=ARRAYS)
class FourBarKneeBranch(FourBarKnee):
    """Motions of period T of the four-bar knee over the damper's stiffness, and the stiffness at which they lose their
    stability.

    A design is a damping; the stiffness runs from `highest_stiffness` downwards. Settings of the leg and the gait are
    those of ``four_bar_knee``. The critical stiffness is that of the followed motion: walks from a given initial state
    may leave it at a higher stiffness, if another attractor exists.
    """

    highest_stiffness: Annotated[float, Q("N/m", "where the branch begins; the walk must settle there", gt=0)] = 30e3
    lowest_stiffness: Annotated[float, Q("N/m", "lowest stiffness of the branch", gt=0)] = 12e3
    step: Annotated[float, Q("N/m", "largest step along the branch", gt=0)] = 250.0
    known_to: Annotated[float, Q("N/m", "within which the critical stiffness is enclosed", gt=0)] = 0.5
    rho_margin: Annotated[float, Q("", "loss of rho that the robust interval allows", gt=0, lt=1)] = 0.01

    def check(self) -> None:
        """Check the knee's settings. Raises `InvalidSetting` for an empty range of stiffness."""
        super().check()
        if self.lowest_stiffness >= self.highest_stiffness:
            raise InvalidSetting(
                "lowest_stiffness",
                f"{self.lowest_stiffness:g} N/m is not below highest_stiffness ({self.highest_stiffness:g} N/m)",
            )

    def design_remarks(self, design: DampingDesign, scenarios: Sequence[KneeConditions]) -> list[str]:
        """A sentence on a leg that is a substitute: a damping without a stiffness has no angle at heel strike."""
        return self._leg_origin(design, scenarios)

    def evaluate(  # type: ignore[override]
        self, design: DampingDesign, scenario: KneeConditions, arrays: Set[str]
    ) -> tuple[BranchOutputs, dict[str, Floats]]:
        """Outputs of the branch for one damping under one set of conditions.

        Raises `InvalidDesign` as the knee does, and `Diverged` if a walk ends or, with the reason ``no_motion``, does
        not converge to a stable motion of period T at the highest stiffness.
        """
        from designopt.dynamics.simulation.side_by_side import run_alone

        return run_alone(self._evaluation(design, scenario, arrays))

    def _evaluation(  # type: ignore[override]
        self, design: DampingDesign, scenario: KneeConditions, arrays: Set[str]
    ) -> OverRuns[tuple[BranchOutputs, dict[str, Floats]]]:
        from designopt_knee.periodic.continuation import follow
        from designopt_knee.periodic.walk import WalkCycles, walk

        if WALK & scenario.keys():
            return (yield from self._walking(scenario)._evaluation(design, leg_conditions(scenario), arrays))
        numbers = cast(Mapping[str, float], scenario), cast(Mapping[str, float], design)

        def leg(stiffness: float) -> dict[str, float]:
            return complete(
                self._base(), numbers[0], {**numbers[1], "stiffness": stiffness},
                allow_low_instant_centre=self.allow_low_instant_centre,
            )  # fmt: skip

        def at(stiffness: float) -> Strides:
            g = leg(stiffness)
            return self.strides(np.array([g[name] for name in EQUATION_PARAMETERS]))

        first = yield from walk(at(self.highest_stiffness), next(iter(initial_states(1))), self.cycles)
        if first.motion is None or not first.is_periodic:
            raise Diverged(
                f"the walk at {self.highest_stiffness:g} N/m has no stable motion of period T: raise highest_stiffness",
                reason="no_motion",
            )
        branch = yield from follow(
            at, first.motion, self.highest_stiffness, self.lowest_stiffness, self.step, self.known_to
        )
        evaluations = [
            self._figures(self._response(WalkCycles([m.stride], m, True)), leg(k))
            for k, m in zip(branch.values, branch.motions, strict=True)
        ]
        leading = np.array([m.multipliers[0] for m in branch.motions])
        all_arrays = {
            "branch_stiffness": branch.values,
            "branch_rho": _column(evaluations, "rho"),
            "branch_peak": _column(evaluations, "peak_flexion"),
            "branch_clearance": _column(evaluations, "toe_clearance"),
            "branch_multiplier": leading.real,
            "branch_modulus": np.abs(leading),
        }
        best = int(np.argmax(all_arrays["branch_rho"]))
        low, high = interval(branch.values, all_arrays["branch_rho"], self.rho_margin)
        outputs: BranchOutputs = {
            "critical_stiffness": self.lowest_stiffness if branch.lost is None else branch.lost,
            "loss": float(LOSSES.index(branch.kind)),
            "loss_contact": float(CONTACTS.index(branch.contact and branch.contact.body)),
            "loss_phase": branch.contact.phase if branch.contact else 0.0,
            "critical_multiplier": float(leading[-1].real),
            "best_rho": float(all_arrays["branch_rho"][best]),
            "best_stiffness": float(branch.values[best]),
            "best_peak": float(all_arrays["branch_peak"][best]),
            "best_clearance": float(all_arrays["branch_clearance"][best]),
            "robust_low": low,
            "robust_high": high,
            "robust_width": high - low,
        }
        return outputs, {name: array for name, array in all_arrays.items() if name in arrays}


def interval(values: Floats, figures: Floats, margin: float) -> tuple[float, float]:
    """The interval around the maximum of `figures` (n,) in which none is smaller than the maximum by more than
    `margin`.

    `values` (n,) decrease; the ends are interpolated linearly between two of them.
    """
    best = int(np.argmax(figures))
    least = figures[best] - margin

    def end(indices: range) -> float:
        inside = best
        for i in indices:
            if figures[i] < least:
                share = (figures[inside] - least) / (figures[inside] - figures[i])
                return float(values[inside] + share * (values[i] - values[inside]))
            inside = i
        return float(values[inside])

    return end(range(best + 1, len(values))), end(range(best - 1, -1, -1))


def _column(evaluations: list[KneeOutputs], name: str) -> Floats:
    return np.array([cast(Mapping[str, float], outputs)[name] for outputs in evaluations])
