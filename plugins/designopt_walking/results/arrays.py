"""Arrays of a solved walk over one cycle, at equal steps from right heel strike on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from designopt_recordings.table import TimeTable
from numpy.typing import NDArray

from designopt.plugin import Array
from designopt_walking.results.cycle import SolvedWalk
from designopt_walking.results.observables import ORIGINS
from designopt_walking.results.physics import failed_check_sentences, fibre_warnings
from designopt_walking.results.recording import bands
from designopt_walking.system import stack_values

#: Declaration of the arrays; feet are right and left.
WALK_ARRAYS: Mapping[str, Array] = {
    "time": Array(("time",), "s", "from right heel strike"),
    "percent": Array(("time",), "%", "of the cycle"),
    "muscles": Array(("muscle",), "", "names", dtype="str"),
    "coordinates": Array(("coordinate",), "", "names", dtype="str"),
    "positions": Array(("time", "coordinate"), "", "coordinates, in rad or m"),
    "speeds": Array(("time", "coordinate"), "", "their rates, in rad/s or m/s"),
    "activations": Array(("time", "muscle"), "", "from 0 to 1"),
    "excitations": Array(("time", "muscle"), "", "from 0 to 1"),
    "forces": Array(("time", "muscle"), "N", "along the tendons"),
    "fibre_lengths": Array(("time", "muscle"), "", "in optimal lengths"),
    "fibre_speeds": Array(("time", "muscle"), "", "in maximum speeds of shortening; shortening is negative"),
    "tendon_strains": Array(("time", "muscle"), "", "lengthening by slack length; 0 of rigid tendons"),
    "metabolic_rates": Array(("time", "muscle"), "W", "heat and work, without the basal rate"),
    "muscle_moments": Array(("time", "coordinate"), "", "generalised forces of the muscles, in N m or N"),
    "device_moments": Array(("time", "coordinate"), "", "of devices, in N m or N"),
    "contact_moments": Array(("time", "coordinate"), "", "of the ground, in N m or N"),
    "drive_moments": Array(("time", "coordinate"), "", "of drives such as that of the trunk, in N m or N"),
    "ground_force": Array(("time", "foot", "axis"), "N", "on each foot, forward and up"),
    "centre_of_pressure": Array(("time", "foot"), "m", "forward; NaN while the foot is in the air"),
    "recorded_positions": Array(("time", "coordinate", "part"), "", "mean and deviation of a recording, or NaN"),
    "recorded_activations": Array(("time", "muscle", "part"), "", "mean and deviation of a recording, or NaN"),
    "effort_shares": Array(("muscle",), "", "share of each muscle in the integral of squared excitations"),
    "peak_activations": Array(("muscle",), "", "over the cycle"),
    "mean_activations": Array(("muscle",), "", "over the cycle"),
    "bounds": Array(("bound",), "", "of coordinates, speeds, drives and chosen parameters", dtype="str"),
    "bound_shares": Array(("bound",), "", "share of the time that it spends at each of these bounds"),
    "notes": Array(("note",), "", "starts without a walk, and fibres outside the range of their curves", dtype="str"),
    "broken_checks": Array(("check",), "", "failed checks, with value, limit and remedy", dtype="str"),
    "skeleton": Array(("time", "vertex", "axis"), "m", "drawing of trunk and right leg; NaN between lines"),
    "left_leg": Array(("time", "vertex", "axis"), "m", "drawing of the left leg"),
    "ground_arrows": Array(("time", "foot", "end", "axis"), "", "point of application (m) and force (N)"),
}

#: Vertical force (N) below which a foot has no centre of pressure.
_LIFTED = 10.0
#: Variables of muscles: their least value is where most of them are.
_OF_MUSCLES = ("excitation_", "activation_", "tendon_force_")
#: Distance from a bound of the duration or a parameter, as a share of its range, within which it is touched.
AT_BOUND = 1e-3


def walk_arrays(walk: SolvedWalk, recording: TimeTable | None = None) -> dict[str, NDArray[Any]]:
    """All of `WALK_ARRAYS`, with the bands of a recorded cycle (`recorded_cycle`)."""
    samples, walker = walk.samples, walk.walker
    observed, muscles = samples.observed, walker.muscles.names
    excitations, activations = (
        stack_values(samples.values, muscles, f"{kind}_{{}}") for kind in ("excitation", "activation")
    )
    effort = samples.integral(excitations**2)
    fore_aft, ground_moments = walk.friction_samples
    force = np.stack([fore_aft, observed.ground_force[:, :, 1]], axis=2)
    centre = np.where(force[:, :, 1] > _LIFTED, observed.pressure_centre, np.nan)
    arrow_ends = np.stack([centre, np.where(np.isfinite(centre), 0.0, np.nan)], axis=2)
    bounds = touched_bounds(walk)
    moments = {name: observed.moments[:, i] for i, name in enumerate(ORIGINS)} | {"contacts": ground_moments}
    return {
        "time": samples.time,
        "percent": 100.0 * samples.time / walk.stride_time,
        "muscles": np.array(muscles, dtype=str),
        "coordinates": np.array(walker.coordinates, dtype=str),
        "positions": stack_values(samples.values, walker.coordinates),
        "speeds": stack_values(samples.values, walker.coordinates, "{}_speed"),
        "activations": activations,
        "excitations": excitations,
        "forces": observed.force,
        "fibre_lengths": observed.fibre_length,
        "fibre_speeds": observed.fibre_speed,
        "tendon_strains": observed.tendon_strain,
        "metabolic_rates": observed.metabolic_rate,
        **{f"{name[:-1]}_moments": values for name, values in moments.items()},
        "ground_force": force,
        "centre_of_pressure": centre,
        "recorded_positions": bands(recording, walker.coordinates, walker.angles),
        "recorded_activations": bands(recording, muscles),
        "effort_shares": effort / effort.sum(),
        "peak_activations": activations.max(axis=0),
        "mean_activations": samples.integral(activations) / walk.stride_time,
        "bounds": np.array(list(bounds), dtype=str),
        "bound_shares": np.array(list(bounds.values()), dtype=float),
        "notes": np.array(fibre_warnings(walk), dtype=str),
        "broken_checks": np.array(failed_check_sentences(walk), dtype=str),
        "skeleton": observed.skeleton,
        "left_leg": observed.left_leg,
        "ground_arrows": np.stack([arrow_ends, force], axis=2),
    }


def duration_bounds(walk: SolvedWalk) -> dict[str, float]:
    """The bound at which the duration of the solved part is, with the share 1."""
    low, high = walk.durations or (-np.inf, np.inf)
    part, duration = "half cycle" if walk.half else "cycle", walk.phase.tf - walk.phase.t0
    limits = {
        f"duration of the {part}, {word}: {limit:g} s": limit for word, limit in (("least", low), ("largest", high))
    }
    return {name: 1.0 for name, limit in limits.items() if abs(duration - limit) < AT_BOUND * (high - low) < np.inf}


def chosen_bounds(walk: SolvedWalk) -> dict[str, float]:
    """The bounds at which chosen parameters of devices are, each with the share 1."""
    shares: dict[str, float] = {}
    for v, _ in (
        pair for device in walk.walker.devices for pair in device.parameters if pair[0].name in walk.chosen_parameters
    ):
        value = walk.solution.parameters[v.name]
        for word, limit in (("least", v.low), ("largest", v.high)):
            if abs(value - limit) < AT_BOUND * (v.high - v.low) < np.inf:
                shares[f"{v.name}, {word}: {limit:g} {v.unit}".strip()] = 1.0
    return shares


def touched_bounds(walk: SolvedWalk) -> dict[str, float]:
    """The share of the time at each bound of a coordinate, a speed or a drive that the solved walk touches; 1 for one
    of the duration or of a chosen parameter."""
    phase, shares = walk.phase, {**duration_bounds(walk), **chosen_bounds(walk)}
    for name, at in phase.saturation.items():
        if name.startswith(_OF_MUSCLES):
            continue
        for word, limit, share in zip(("least", "largest"), phase.bounds[name], at, strict=True):
            if share > 0.0:
                degrees = phase.units[name].startswith("rad")
                value = f"{np.degrees(limit) if degrees else limit:.4g}"
                unit = phase.units[name].replace("rad", "deg")
                shares[f"{name}, {word}: {value} {unit}".strip()] = share
    return shares
