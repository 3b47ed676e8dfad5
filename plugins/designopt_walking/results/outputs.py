"""Outputs of a solved walk: effort, pace, ground forces, symmetry, device, checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict, cast

import numpy as np

from designopt.arrays import Floats
from designopt.collocation import Solution
from designopt.plugin import Diverged
from designopt.plugin import Quantity as Q
from designopt_walking.metabolics import BASAL
from designopt_walking.results.cycle import SAMPLES, SolvedWalk
from designopt_walking.results.observables import ORIGINS
from designopt_walking.results.physics import CHECKS, MESH_CHANGE, OTHER_WALK, physics
from designopt_walking.system import stack_values

#: The limits of the checks in words.
_LIMITS = ", ".join(f"{name} {limit:g}" for name, (_, limit) in CHECKS.items())


class WalkOutputs(TypedDict):
    """Outputs of a walk over one full cycle; r is the right side, l the left."""

    objective: Annotated[float, Q("", "the minimised cost")]
    effort: Annotated[float, Q("1/m", "the cost's term of excitations and drives, by distance")]
    cost_of_transport: Annotated[float, Q("J/(kg m)", "metabolic energy by mass and distance, with the basal rate")]
    net_cost_of_transport: Annotated[float, Q("J/(kg m)", "the same without the basal rate")]
    speed: Annotated[float, Q("m/s", "of the pelvis over the cycle")]
    final_time: Annotated[float, Q("s", "duration of the solved half or full cycle")]
    stride_time: Annotated[float, Q("s", "duration of the full cycle")]
    step_length: Annotated[float, Q("m", "half of the distance of the full cycle")]
    cadence: Annotated[float, Q("1/min", "steps per minute")]
    early_peak_r: Annotated[float, Q("", "vertical force in the first half of stance, body weights")]
    early_peak_l: Annotated[float, Q("", "vertical force in the first half of stance, body weights")]
    late_peak_r: Annotated[float, Q("", "vertical force in the second half of stance, body weights")]
    late_peak_l: Annotated[float, Q("", "vertical force in the second half of stance, body weights")]
    stance_r: Annotated[float, Q("", "share of the cycle with the foot on the ground")]
    stance_l: Annotated[float, Q("", "share of the cycle with the foot on the ground")]
    braking_impulse: Annotated[float, Q("N s", "of the fore-aft force where a foot brakes, both feet")]
    propulsion_impulse: Annotated[float, Q("N s", "of the fore-aft force where a foot propels, both feet")]
    stance_flexion_r: Annotated[float, Q("rad", "largest knee flexion in stance")]
    stance_flexion_l: Annotated[float, Q("rad", "largest knee flexion in stance")]
    swing_flexion_r: Annotated[float, Q("rad", "largest knee flexion in swing")]
    swing_flexion_l: Annotated[float, Q("rad", "largest knee flexion in swing")]
    loading_asymmetry: Annotated[float, Q("", "of the vertical impulse: right less left by their sum")]
    peak_force_asymmetry: Annotated[float, Q("", "of the largest vertical force")]
    stance_asymmetry: Annotated[float, Q("", "of the durations of stance")]
    step_length_asymmetry: Annotated[float, Q("", "of the steps onto the right and onto the left foot")]
    step_time_asymmetry: Annotated[float, Q("", "of the times between foot strikes, the step onto the right first")]
    swing_flexion_asymmetry: Annotated[float, Q("", "of the largest knee flexion in swing")]
    positive_device_work: Annotated[float, Q("J", "per cycle, where the device drives a joint")]
    negative_device_work: Annotated[float, Q("J", "per cycle, where it brakes one")]
    peak_activation: Annotated[float, Q("", "largest of any muscle")]
    mean_activation: Annotated[float, Q("", "over the cycle and all muscles")]
    mean_force_error: Annotated[float, Q("", "of the mean vertical force, relative to the weight")]
    impulse_error: Annotated[float, Q("", "of the fore-aft impulse, by weight times duration")]
    energy_error: Annotated[float, Q("", "of the energy balance, relative to the work of the muscles")]
    force_peaks: Annotated[float, Q("", "largest number of peaks of a foot's vertical force over the cycle")]
    failed_checks: Annotated[
        float,
        Q("", f"beyond {_LIMITS}: not to be used, raise 'intervals'", notable=True, listed_by="broken_checks"),
    ]
    penetration: Annotated[float, Q("m", "largest, of a foot into the ground")]
    peak_foot_force: Annotated[float, Q("", "on one foot, body weights")]
    fibres_outside: Annotated[float, Q("", "muscles whose fibres leave the range of their curves", notable=True)]
    constraint_violation: Annotated[float, Q("", "largest, relative to the scales of the program")]
    error_estimate: Annotated[float, Q("", "of the discretisation, relative to the states")]
    resimulation_error: Annotated[float, Q("", "of simulations of single intervals, relative to the states")]
    iterations: Annotated[float, Q("", "of the solver, in the last solve")]


#: The setting that asks for a finer mesh, and the outputs that it adds.
CONFIRM = "solve again on twice the intervals: that walk is the result, and the outputs mesh_... compare both"
MESH_OUTPUTS = {
    "mesh_change": Q("", "of the objective on twice the intervals, relative"),
    "mesh_difference": Q(
        "rad", "of the angle that differs most on twice the intervals, root mean square over the walk"
    ),
    "mesh_unconverged": Q("", f"1 where mesh_change is above {MESH_CHANGE:g}", notable=True),
}


#: Outputs of walkers with compliant tendons.
TENDON_OUTPUTS = {
    "peak_tendon_strain": Q("", "largest of any muscle"),
    "peak_tendon_energy": Q("J", "largest sum stored in all tendons"),
    "tendon_work": Q("J", "per cycle that tendons take up and return"),
}


def tendon_outputs(walk: SolvedWalk) -> dict[str, float]:
    """The `TENDON_OUTPUTS` of a walk with compliant tendons; none of one with rigid tendons."""
    if not walk.walker.muscles.compliant:
        return {}
    observed = walk.points.observed
    work = float(walk.points.integral(np.maximum(observed.tendon_power, 0.0)).sum())
    return {**tendon_peaks(observed.tendon_strain, observed.tendon_energy), "tendon_work": work}


def tendon_peaks(strain: Floats, energy: Floats) -> dict[str, float]:
    """The peaks of tendons with this `strain` (n, k) and `energy` (n, k) J at n instants."""
    return {"peak_tendon_strain": float(strain.max()), "peak_tendon_energy": float(energy.sum(axis=1).max())}


def mesh_outputs(coarse: Solution, finer: Solution, angles: Sequence[str]) -> dict[str, float]:
    """The `MESH_OUTPUTS` of a walk that is solved on two meshes, whose coordinates in rad are `angles`.

    Raises `Diverged` where it is not solved on the `finer` one, or where that has another walk: an angle differs by
    more than `OTHER_WALK`.
    """
    if not finer.success:
        raise Diverged(
            f"the walk is solved, but not on twice the intervals (setting 'confirm'): {finer.message}",
            reason=f"confirmation_{finer.status.name.lower()}",
        )
    fractions = np.linspace(0.0, 1.0, SAMPLES)
    walks = [solution.phase.at(fractions) for solution in (coarse, finer)]
    differences = {name: float(np.sqrt(np.mean((walks[1][name] - walks[0][name]) ** 2))) for name in angles}
    name, difference = max(differences.items(), key=lambda entry: entry[1])
    if difference > OTHER_WALK:
        raise Diverged(
            f"not confirmed: on twice the intervals (setting 'confirm') the search ends in another walk, whose {name}"
            f" differs by {np.degrees(difference):.1f} deg (root mean square, at most {np.degrees(OTHER_WALK):.0f} deg)"
            f" and whose objective is {finer.objective:.4g} instead of {coarse.objective:.4g}: raise 'intervals'",
            reason="confirmation_another_walk",
        )
    change = abs(coarse.objective / finer.objective - 1.0)
    return {
        "mesh_change": change,
        "mesh_difference": difference,
        "mesh_unconverged": float(change > MESH_CHANGE),
    }


def walk_outputs(walk: SolvedWalk) -> WalkOutputs:
    """All outputs of a solved walk; terms of the cost are those of its solution."""
    solution, points, mass = walk.solution, walk.points, walk.walker.mass
    heat = float(points.integral(points.observed.metabolic_rate.sum(axis=1)))
    basal = BASAL * mass * walk.stride_time
    fore_aft = points.observed.ground_force[:, :, 0]
    power = device_power(walk)
    activations = stack_values(points.values, walk.walker.muscles.names, "activation_{}")
    outputs = {
        "objective": solution.objective,
        "effort": solution.terms.get("effort", solution.figures.get("effort", solution.objective)),
        "cost_of_transport": (heat + basal) / (mass * walk.stride),
        "net_cost_of_transport": heat / (mass * walk.stride),
        "speed": walk.stride / walk.stride_time,
        "final_time": walk.phase.tf - walk.phase.t0,
        "stride_time": walk.stride_time,
        "step_length": 0.5 * walk.stride,
        "cadence": 120.0 / walk.stride_time,
        "braking_impulse": -float(points.integral(np.minimum(fore_aft, 0.0)).sum()),
        "propulsion_impulse": float(points.integral(np.maximum(fore_aft, 0.0)).sum()),
        **_sides(walk),
        "positive_device_work": float(points.integral(np.maximum(power, 0.0)).sum()),
        "negative_device_work": float(points.integral(np.minimum(power, 0.0)).sum()),
        "peak_activation": float(activations.max()),
        "mean_activation": float(points.integral(activations.mean(axis=1)) / walk.stride_time),
        **physics(walk),
        **solver_outputs(solution),
        **tendon_outputs(walk),
    }
    return cast(WalkOutputs, outputs)


def solver_outputs(solution: Solution) -> dict[str, float]:
    """Errors and iterations of a solution with one phase."""
    return {
        "constraint_violation": solution.violation,
        "error_estimate": solution.error_estimate,
        "resimulation_error": float(np.max(solution.phase.segment_errors, initial=0.0)),
        "iterations": float(solution.iterations),
    }


def device_power(walk: SolvedWalk) -> Floats:
    """(n, m) W of the devices at each coordinate, at the points of the mesh."""
    points = walk.points
    speeds = stack_values(points.values, walk.walker.coordinates, "{}_speed")
    return np.asarray(points.observed.moments[:, ORIGINS.index("devices")] * speeds)


def asymmetry(right: float, left: float) -> float:
    """(right - left) / (right + left); 0 where both are 0."""
    total = right + left
    return (right - left) / total if total else 0.0


def _sides(walk: SolvedWalk) -> dict[str, float]:
    """Figures of each side and their asymmetry: peaks of the force, stance, knee flexion, steps."""
    points, cycle = walk.points, walk.stride_time
    force = points.observed.ground_force[:, :, 1] / walk.walker.weight
    outputs: dict[str, float] = {}
    feet = []
    for i, side in enumerate("rl"):
        stance = walk.stances[i]
        progress = (points.time - stance.strike) % cycle  # s since the strike
        standing = progress < stance.duration
        early = standing & (progress < 0.5 * stance.duration)
        flexion = -points.values[f"knee_angle_{side}"]
        outputs[f"early_peak_{side}"] = _highest(force[early, i])
        outputs[f"late_peak_{side}"] = _highest(force[standing & ~early, i])
        outputs[f"stance_{side}"] = stance.duration / cycle
        outputs[f"stance_flexion_{side}"] = _highest(flexion[standing])
        outputs[f"swing_flexion_{side}"] = _highest(flexion[~standing])
        feet.append(float(np.interp(stance.strike, points.time, points.observed.heel[:, i])))
    right, left = walk.stances
    later = left.strike > right.strike
    to_left = left.strike - right.strike + (0.0 if later else cycle)
    onto_left = feet[1] - feet[0] + (0.0 if later else walk.stride)
    impulses = points.integral(points.observed.ground_force[:, :, 1]).tolist()
    peaks = [max(outputs[f"early_peak_{side}"], outputs[f"late_peak_{side}"]) for side in "rl"]
    outputs["loading_asymmetry"] = asymmetry(*impulses)
    outputs["peak_force_asymmetry"] = asymmetry(*peaks)
    outputs["stance_asymmetry"] = asymmetry(right.duration, left.duration)
    outputs["step_time_asymmetry"] = asymmetry(cycle - to_left, to_left)
    outputs["step_length_asymmetry"] = asymmetry(walk.stride - onto_left, onto_left)
    outputs["swing_flexion_asymmetry"] = asymmetry(outputs["swing_flexion_r"], outputs["swing_flexion_l"])
    return outputs


def _highest(values: Floats) -> float:
    """The largest of the values; NaN without any."""
    return float(values.max()) if len(values) else np.nan
