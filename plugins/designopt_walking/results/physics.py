"""Checks of a solved walk against mechanics, and of its plausibility."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.counts import plural
from designopt.plugin import Diverged
from designopt_walking.results.cycle import SolvedWalk
from designopt_walking.results.observables import ORIGINS
from designopt_walking.system import stack_values

#: Relative errors above which a check fails: of the mean vertical force, the fore-aft impulse, the energy balance.
FORCE_ERROR, IMPULSE_ERROR, ENERGY_ERROR = 1e-3, 5e-3, 1e-2
#: Relative change of the objective on twice the intervals above which a walk is not converged with the mesh.
MESH_CHANGE = 1e-3
#: Root mean square difference (rad) of an angle on twice the intervals beyond which it is another walk.
OTHER_WALK = float(np.radians(5.0))
#: Height (body weights) above the valleys beside it that makes a peak of the vertical force, and the most peaks of a
#: stance: heel strike, loading and push-off are three; more of them follow the mesh.
PEAK, MOST_PEAKS = 0.2, 4
#: The checks that a result must pass: the output of each, what it is, and its limit.
CHECKS: Mapping[str, tuple[str, float]] = {
    "mean_force_error": ("error of the mean vertical force", FORCE_ERROR),
    "impulse_error": ("error of the fore-aft impulse", IMPULSE_ERROR),
    "energy_error": ("error of the energy balance", ENERGY_ERROR),
    "force_peaks": ("number of peaks of a foot's force", MOST_PEAKS),
}
#: Limits that no foot exceeds: indentation (m), force (body weights).
DEEP, HARD = 0.030, 4.0
#: Fibre lengths (optimal lengths) and speeds (maximum speeds of shortening) for which the curves of muscles hold.
FIBRES, FIBRE_SPEEDS = (0.2, 1.8), (-1.0, 1.0)


def physics(walk: SolvedWalk) -> dict[str, float]:
    """Relative errors of balances that hold over any cycle, the sinking and the peak force of the feet, fibres.

    `mean_force_error` compares the mean force normal to the ground with that of the weight, `impulse_error` the impulse
    along the ground with that of the weight (zero on level ground) and of a pull, relative to weight and weight times
    duration, `energy_error` the work of muscle fibres, devices, drives, ground and pull, whose sum is the change of
    energy, that of tendons included, with the work of the muscles at the joints without signs. `force_peaks` counts
    the peaks of the vertical force of a foot over the cycle, between the points of the mesh, too: a force that follows
    the mesh has many, although it balances the weight. `failed_checks` counts those beyond their limits.
    """
    points = walk.points
    observed, weight, duration = points.observed, walk.walker.weight, walk.stride_time
    total = observed.ground_force.sum(axis=1)
    along, normal = (walk.walker.mass * walk.walker.model.gravity[:2] / weight).tolist()
    pull = walk.walker.pull
    speeds = stack_values(points.values, walk.walker.coordinates, "{}_speed")
    powers = (observed.moments * speeds[:, None]).sum(axis=2)
    works = points.integral(powers)
    tendon_energy = observed.tendon_energy.sum(axis=1)
    into_tendons = float(points.integral(observed.tendon_power).sum())  # fibres do this beside the work at the joints
    change = float(observed.energy[-1].sum() - observed.energy[0].sum()) + float(tendon_energy[-1] - tendon_energy[0])
    size = float(points.integral(np.abs(powers[:, ORIGINS.index("muscles")])))
    outputs = {
        "mean_force_error": float(abs(points.integral(total[:, 1]) / (weight * duration) + normal)),
        "impulse_error": float(abs(points.integral(total[:, 0]) / (weight * duration) + along + pull / weight)),
        "energy_error": abs(float(works.sum()) + into_tendons + pull * walk.stride - change) / size if size else 0.0,
    }
    forces = (observed.ground_force, walk.samples.observed.ground_force)  # at the points, and between them as drawn
    outputs["force_peaks"] = float(max(_peaks(column) for force in forces for column in force[:, :, 1].T / weight))
    outputs["failed_checks"] = float(sum(not outputs[name] <= limit for name, (_, limit) in CHECKS.items()))
    outputs["penetration"] = float(observed.indentation.max())
    outputs["peak_foot_force"] = float(np.linalg.norm(observed.ground_force, axis=2).max() / weight)
    outputs["fibres_outside"] = fibres_outside(observed.fibre_length, observed.fibre_speed)
    return outputs


def failed_check_sentences(walk: SolvedWalk) -> list[str]:
    """A sentence for each of the `CHECKS` that `walk` fails, with its value, its limit and the remedy."""
    outputs, intervals = physics(walk), plural(len(walk.phase.mesh.widths), "interval")
    part = "half cycle" if walk.half else "cycle"
    return [
        f"the {words} ({name}) is {outputs[name]:.3g}, more than {limit:g}: raise 'intervals' (here {intervals} of the "
        f"{part}), the mesh is too coarse for this walk"
        for name, (words, limit) in CHECKS.items()
        if not outputs[name] <= limit
    ]


def fibres_outside(lengths: Floats, speeds: Floats) -> float:
    """Number of muscles whose fibres leave the range of their curves: `lengths` (n, k) in optimal lengths, `speeds`
    (n, k) in maximum speeds of shortening."""
    outside = (lengths < FIBRES[0]) | (lengths > FIBRES[1]) | (np.abs(speeds) > FIBRE_SPEEDS[1])
    return float(outside.any(axis=0).sum())


def _peaks(force: Floats) -> int:
    """Number of peaks of `force` (n,) over a cycle that are higher than the valleys on both sides by `PEAK`."""
    from scipy.signal import find_peaks

    cycle = np.roll(force, -int(force.argmin()))
    return len(find_peaks(np.append(cycle, cycle[0]), prominence=PEAK)[0])


def refuse_implausible(outputs: dict[str, float] | Any, arrays: dict[str, Any], deepest: float = DEEP) -> None:
    """Raise `Diverged` with the reason ``implausible``, and the `arrays`, for a walk that no foot can do, which sinks
    in by more than `deepest` (m): such a design has no result, so that it never leads a front."""
    deep, hard = outputs["penetration"], outputs["peak_foot_force"]
    if deep <= deepest and hard <= HARD:
        return
    figures = f"effort {outputs['effort']:.4g}"
    if "cost_of_transport" in outputs:
        figures += f", cost of transport {outputs['cost_of_transport']:.4g} J/(kg m)"
    raise Diverged(
        f"implausible: a foot sinks {1e3 * deep:.1f} mm into the ground (at most {1e3 * deepest:.0f} mm) with at most "
        f"{hard:.2f} body weights (at most {HARD:.0f}); {figures}",
        reason="implausible",
        arrays=arrays,
    )


def fibre_warnings(walk: SolvedWalk) -> list[str]:
    """A sentence for each muscle whose fibre leaves the range of its curves, with the time and the value."""
    points, sentences = walk.samples, []
    for j, name in enumerate(walk.walker.muscles.names):
        for values, (low, high), unit in (
            (points.observed.fibre_length[:, j], FIBRES, "optimal lengths"),
            (points.observed.fibre_speed[:, j], FIBRE_SPEEDS, "maximum speeds of shortening"),
        ):
            off = np.maximum(low - values, values - high)
            k = int(off.argmax())
            if off[k] > 0.0:
                sentences.append(
                    f"the fibre of {name} is at {values[k]:.3g} {unit} at {points.time[k]:.3g} s after right heel "
                    f"strike; its curves hold from {low:g} to {high:g}"
                )
    return sentences
