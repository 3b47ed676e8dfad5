"""Parameters of the leg: names, units, admissible values, the named sets, and the checks before anything is integrated.

Source tags: P stated in the paper's text (Lü et al. 2020); R reconstructed from its words; S substitute, chosen within
plausible ranges because the paper's tables were not available; D derived from other parameters.
"""

from __future__ import annotations

import typing
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import Annotated, TypedDict

import numpy as np

from designopt.plugin import InputFile, InvalidDesign, Quantity

Q = Quantity


class KneeParameters(TypedDict, total=False):
    """Every number of the leg, in SI units."""

    thigh_length: Annotated[float, Q("m", "thigh, hip to E", gt=0)]
    shank_length: Annotated[float, Q("m", "shank, F to ankle", gt=0)]
    foot_length: Annotated[float, Q("m", "sole, heel to toe", gt=0)]
    heel_fraction: Annotated[float, Q("", "share of the sole behind the ankle", ge=0, le=1)]
    ab_length: Annotated[float, Q("m", "upper link AB", gt=0)]
    bc_length: Annotated[float, Q("m", "rear link BC", gt=0)]
    cd_length: Annotated[float, Q("m", "lower link CD", gt=0)]
    ad_length: Annotated[
        float, Q("m", "front link AD; derived when not given: knee straight where BC meets its stop", gt=0)
    ]
    ae_length: Annotated[float, Q("m", "front end of the upper body to A", gt=0)]
    df_length: Annotated[float, Q("m", "D to the head of the shank, on line DC", gt=0)]
    upper_body_angle: Annotated[float, Q("rad", "upper body BE to the thigh", gt=0, lt=3.1416)]
    lower_body_angle: Annotated[float, Q("rad", "link CD to the shank's axis", gt=0, lt=1.5708)]
    damper_rest_length: Annotated[float, Q("m", "length of the unloaded damper", gt=0)]
    damper_upper_lever: Annotated[float, Q("m", "damper's lever at the upper body", gt=0)]
    damper_lower_lever: Annotated[float, Q("m", "damper's lever on AD", gt=0)]
    ground_stiffness: Annotated[float, Q("N/m", "ground at heel and toe", gt=0)]
    ground_damping: Annotated[float, Q("N s/m", "ground at heel and toe", ge=0)]
    ground_sharpness: Annotated[float, Q("1/m", "steepness of the smoothed touch of the ground", gt=0)]
    friction: Annotated[float, Q("", "coefficient of friction of the sole", ge=0)]
    friction_sharpness: Annotated[float, Q("s/m", "steepness of the smoothed sign of sliding", gt=0)]
    stop_stiffness: Annotated[float, Q("N/m", "stop of the straight knee", gt=0)]
    stop_damping: Annotated[float, Q("N s/m", "stop of the straight knee", ge=0)]
    stop_sharpness: Annotated[float, Q("1/m", "steepness of the smoothed touch of the stop", gt=0)]
    stop_lever: Annotated[float, Q("m", "lever of the stop about the joints of BC", gt=0)]
    ankle_stiffness: Annotated[float, Q("N m/rad", "ankle, about the recorded ankle angle", ge=0)]
    ankle_damping: Annotated[float, Q("N m s/rad", "ankle", ge=0)]
    shank_mass: Annotated[float, Q("kg", "shank", gt=0)]
    shank_inertia: Annotated[float, Q("kg m^2", "shank, about its middle", gt=0)]
    foot_mass: Annotated[float, Q("kg", "foot", gt=0)]
    foot_inertia: Annotated[float, Q("kg m^2", "foot, about its middle", gt=0)]
    ad_mass: Annotated[float, Q("kg", "front link", gt=0)]
    ad_inertia: Annotated[float, Q("kg m^2", "front link, about its middle", gt=0)]
    bc_mass: Annotated[float, Q("kg", "rear link", gt=0)]
    bc_inertia: Annotated[float, Q("kg m^2", "rear link, about its middle", gt=0)]
    cd_mass: Annotated[float, Q("kg", "lower link", gt=0)]
    cd_inertia: Annotated[float, Q("kg m^2", "lower link, about its middle", gt=0)]
    gravity: Annotated[float, Q("m/s^2", "acceleration of free fall", ge=0)]
    hip_hike: Annotated[float, Q("", "factor on the height of the hip above the ground", ge=0.9, le=1.1)]


class KneeConditions(KneeParameters, total=False):
    """Conditions of a scenario: the recorded walk, and any parameter of the leg."""

    gait_file: Annotated[InputFile, Q("", "recorded walk of this scenario, as the setting gait")]
    gait_period: Annotated[float, Q("s", "gait period; replaces that of the walk's file", gt=0)]
    gait_speed: Annotated[float, Q("m/s", "walking speed; replaces that of the walk's file", ge=0)]


#: Conditions that say how somebody walks; all others are parameters of the leg.
WALK = frozenset({"gait_file", "gait_period", "gait_speed"})


class DampingDesign(KneeParameters, total=False):
    """Values of a design besides the damper's stiffness: its damping, a change of length, parameters of the leg."""

    damping_ratio: Annotated[float, Q("s", "damper's damping over its stiffness, c/k", ge=0)]
    damping: Annotated[float, Q("N s/m", "damper's damping c (instead of damping_ratio)", ge=0)]
    extension_damping_ratio: Annotated[
        float, Q("s", "c/k while the damper lengthens (the knee extends); as c/k unless given", ge=0)
    ]
    extension_damping: Annotated[
        float, Q("N s/m", "c while the damper lengthens (instead of extension_damping_ratio)", ge=0)
    ]
    quadratic_damping: Annotated[float, Q("N s^2/m^2", "hydraulic damping: force over the square of the speed", ge=0)]
    shank_offset: Annotated[float, Q("m", "added to the length of the shank")]


class KneeDesign(DampingDesign, total=False):
    """Values of a design: the damper, a change of length, and any parameter of the leg."""

    stiffness: Annotated[float, Q("N/m", "damper's stiffness k", gt=0)]


@dataclass(frozen=True)
class SourcedValue:
    """One entry of a named set: the paper's symbol, the value in SI units, and where it comes from."""

    symbol: str
    value: float
    source: str


#: Stated values where the paper gives them, substitutes elsewhere; AD follows from the other lengths.
SUBSTITUTE_V1: Mapping[str, SourcedValue] = {
    "thigh_length": SourcedValue("l_t", 0.385, "S"),
    "shank_length": SourcedValue("l_s", 0.475, "S"),
    "foot_length": SourcedValue("l_f", 0.25, "S"),
    "heel_fraction": SourcedValue("r_f", 0.28, "S"),
    "ab_length": SourcedValue("l_AB", 0.015, "S"),
    "bc_length": SourcedValue("l_BC", 0.060, "S"),
    "cd_length": SourcedValue("l_CD", 0.080, "S"),
    "ae_length": SourcedValue("l_AE", 0.008, "S"),
    "df_length": SourcedValue("l_DF", 0.02345, "S"),
    "upper_body_angle": SourcedValue("gamma1", float(np.radians(90.0)), "P"),
    "lower_body_angle": SourcedValue("gamma2", float(np.radians(24.0)), "P"),
    "damper_rest_length": SourcedValue("l0", 0.16879, "P"),
    "damper_upper_lever": SourcedValue("a", 0.020, "S"),
    "damper_lower_lever": SourcedValue("b", 0.16, "S"),
    "ground_stiffness": SourcedValue("K_N", 1e5, "P"),
    "ground_damping": SourcedValue("chi_N", 20.0, "P"),
    "ground_sharpness": SourcedValue("C1", 1e6, "P"),
    "friction": SourcedValue("mu", 0.6, "P"),
    "friction_sharpness": SourcedValue("C2", 1e4, "P"),
    "stop_stiffness": SourcedValue("K_c", 7.5e4, "P"),
    "stop_damping": SourcedValue("C_c", 20.0, "P"),
    "stop_sharpness": SourcedValue("C3", 1e6, "P"),
    "stop_lever": SourcedValue("d_s", 0.06, "S"),
    "ankle_stiffness": SourcedValue("k_a", 10.0, "P"),
    "ankle_damping": SourcedValue("c_a", 0.2, "P"),
    "shank_mass": SourcedValue("m_s", 1.6, "S"),
    "shank_inertia": SourcedValue("I_s", 0.025, "S"),
    "foot_mass": SourcedValue("m_f", 1.0, "S"),
    "foot_inertia": SourcedValue("I_f", 0.005, "S"),
    "ad_mass": SourcedValue("m_AD", 0.25, "S"),
    "ad_inertia": SourcedValue("I_AD", 4e-4, "S"),
    "bc_mass": SourcedValue("m_BC", 0.10, "S"),
    "bc_inertia": SourcedValue("I_BC", 4e-5, "S"),
    "cd_mass": SourcedValue("m_CD", 0.35, "S"),
    "cd_inertia": SourcedValue("I_CD", 3e-4, "S"),
    "gravity": SourcedValue("g", 9.81, "R"),
    "hip_hike": SourcedValue("", 1.0, "P"),
}

#: A leg that swings clear of the ground. In `substitute_v1` the toe touches it in every swing: the prosthetic knee
#: bends less than the recorded one and extends sooner, and 18 cm of stiff sole before the ankle are too long for that.
#: Here the stiff sole ends at the ball of the foot, 12.6 cm before the ankle, and the shank has the middle of the
#: masses that are reported for prostheses (1.33 to 3.37 kg; Hale 1990). Shorter shanks do not help: they lose the
#: ground in stance.
SUBSTITUTE_V2: Mapping[str, SourcedValue] = {
    **SUBSTITUTE_V1,
    "foot_length": SourcedValue("l_f", 0.20, "S"),
    "heel_fraction": SourcedValue("r_f", 0.37, "S"),
    "shank_mass": SourcedValue("m_s", 2.5, "S"),
}

PARAMETER_SETS: Mapping[str, Mapping[str, SourcedValue]] = {
    "substitute_v1": SUBSTITUTE_V1,
    "substitute_v2": SUBSTITUTE_V2,
}


def substitute_remarks(parameter_set: str, overrides: Collection[str], conditions: Collection[str]) -> list[str]:
    """A sentence on the values of a leg that are substitutes of `parameter_set`, not `overrides`, and on scenarios
    that would vary the leg or the hip if none of their `conditions` do."""
    values = PARAMETER_SETS[parameter_set]
    substitutes = {name for name, value in values.items() if value.source == "S"}
    names = substitutes - {*overrides}
    if not names:
        return []
    extent = "all" if names == substitutes else f"{len(names)} of"
    way = (
        ""
        if {*conditions} & {*values}
        else "; scenarios or 'report: {validate: ...}' vary leg, hip and walk: docs/four_bar_knee.md, step 5 of a gait"
    )
    return [
        f"the leg is a substitute: {extent} its {len(substitutes)} lengths, masses and levers are those of"
        f" {parameter_set}, not a person's{way}"
    ]


def damper_remarks(design: Mapping[str, float]) -> list[str]:
    """A sentence on the damper of a design for its builder: stiffness, damping, and the line along which they act."""
    k = design["stiffness"]
    c = design["damping"] if "damping" in design else k * design["damping_ratio"]
    extension = design.get("extension_damping", k * design.get("extension_damping_ratio", c / k))
    way = "" if extension == c else f" ({extension:.4g} N s/m while it lengthens)"
    return [
        f"the damper's k {k:.5g} N/m and c {c:.4g} N s/m{way} are force per change and per rate of its length, between"
        " the upper body of the knee and link AD; it shortens as the knee bends"
    ]


#: The damper in the equations of motion.
DAMPER = ("stiffness", "damping", "extension_damping", "quadratic_damping")

#: Arguments of the equations of motion, in their order: the checked parameters and what `complete` derives from them.
EQUATION_PARAMETERS = (*typing.get_type_hints(KneeParameters), *DAMPER, "damper_phase")


@lru_cache(maxsize=1)
def quantities() -> Mapping[str, Quantity]:
    """Unit, meaning and range of every name that a design may hold."""
    hints = typing.get_type_hints(KneeDesign, include_extras=True)
    return {name: typing.get_args(hint)[1] for name, hint in hints.items()}


def check_ranges(values: Mapping[str, float]) -> None:
    """Raise `InvalidDesign` naming the first value that is unknown, not a finite number or out of its range."""
    from designopt.study.language.checking.single_values import out_of_range

    for name, value in values.items():
        if name not in quantities():
            raise InvalidDesign(f"{name}: the four-bar knee has no such parameter")
        if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(value):
            raise InvalidDesign(f"{name}: {value!r} is not a finite number")
        if message := out_of_range(float(value), quantities()[name]):
            raise InvalidDesign(f"{name}: {message}")


def complete(
    base: Mapping[str, float],
    scenario: Mapping[str, float],
    design: Mapping[str, float],
    *,
    allow_low_instant_centre: bool = False,
) -> dict[str, float]:
    """All of `EQUATION_PARAMETERS` from a parameter set, the conditions of a scenario and a design (SI units).

    Raises `InvalidDesign` naming the value for anything out of range, contradictory or geometrically impossible.
    """
    from designopt_knee import linkage

    twice = sorted(set(scenario) & set(design))
    if twice:
        raise InvalidDesign(f"{twice[0]}: given by both the design and the scenario")
    values = {**base, **scenario, **design}
    check_ranges(values)
    if "stiffness" not in values:
        raise InvalidDesign("stiffness: the damper's stiffness is missing")
    if ("damping" in values) == ("damping_ratio" in values):
        raise InvalidDesign("damping: give either damping_ratio (s) or damping (N s/m)")
    if "extension_damping" in values and "extension_damping_ratio" in values:
        raise InvalidDesign(
            "extension_damping: give either extension_damping_ratio (s) or extension_damping (N s/m), not both"
        )
    for name in ("damping", "extension_damping"):
        if f"{name}_ratio" in values:
            values[name] = values.pop(f"{name}_ratio") * values["stiffness"]
    values.setdefault("extension_damping", values["damping"])
    values.setdefault("quadratic_damping", 0.0)
    values["shank_length"] += values.pop("shank_offset", 0.0)
    if values["shank_length"] <= 0.0:
        raise InvalidDesign("shank_offset: the shank would have no length left")
    if "ad_length" not in values:
        values["ad_length"] = linkage.straight_ad_length(values)
    check_geometry(values, allow_low_instant_centre=allow_low_instant_centre)
    values["damper_phase"] = linkage.damper_phase(values)
    return {name: float(values[name]) for name in EQUATION_PARAMETERS}


def check_geometry(g: Mapping[str, float], *, allow_low_instant_centre: bool = False) -> None:
    """Raise `InvalidDesign` when the linkage cannot work as a knee or the damper's triangle cannot close."""
    lengths = ("ab_length", "bc_length", "cd_length", "ad_length", "upper_body_angle", "lower_body_angle")
    _check_linkage(tuple((name, g[name]) for name in lengths), allow_low_instant_centre)
    a, b, d = g["damper_upper_lever"], g["damper_lower_lever"], g["damper_rest_length"]
    if not abs(a - b) < d < a + b:
        raise InvalidDesign(
            f"damper_rest_length: {d:g} m is outside {abs(a - b):g} to {a + b:g} m, the reach of damper_upper_lever"
            " and damper_lower_lever"
        )


@lru_cache(maxsize=256)
def _linkage_problem(lengths: tuple[tuple[str, float], ...], allow_low_instant_centre: bool) -> str | None:
    from designopt_knee.linkage import flexion_range

    g = dict(lengths)
    _, highest = flexion_range(g)
    if np.isnan(highest):
        return "ad_length: the linkage ab, bc, cd, ad does not close with the knee straight (eta = 0)"
    if highest < np.radians(110.0):
        return f"cd_length: the linkage folds at {np.degrees(highest):.1f} deg of flexion; 110 deg are needed"
    if g["cd_length"] * np.sin(g["lower_body_angle"]) <= g["ab_length"] and not allow_low_instant_centre:
        return (
            "cd_length: the instant centre is not above the knee (cd_length * sin(lower_body_angle) <= ab_length);"
            " set allow_low_instant_centre to compute it anyway"
        )
    return None


def _check_linkage(lengths: tuple[tuple[str, float], ...], allow_low_instant_centre: bool) -> None:
    problem = _linkage_problem(lengths, allow_low_instant_centre)
    if problem:
        raise InvalidDesign(problem)
