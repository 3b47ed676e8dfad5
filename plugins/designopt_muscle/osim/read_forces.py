"""Read muscles with their paths, and drives of coordinates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from designopt_mechanics.robot_files.xml import Element

from designopt_muscle.osim.model import CoordinateActuator, OsimMuscle, WrapObject
from designopt_muscle.osim.poses import last_name, refuse_other_children
from designopt_muscle.osim.read_passive import PASSIVE
from designopt_muscle.osim.read_paths import read_path, read_path_function

_MODELS = {
    "Thelen2003Muscle": "thelen",
    "Millard2012EquilibriumMuscle": "millard",
    "DeGrooteFregly2016Muscle": "degroote",
}
#: Forces that are left out, each with a note on its kind: none of them acts on a recorded motion.
_UNUSED = {
    "PathActuator": "drives along paths do not take part in the sharing",
    "HuntCrossleyForce": "contacts are not computed, ground forces are those of the external loads",
    "ElasticFoundationForce": "contacts are not computed, ground forces are those of the external loads",
}
#: Muscles that are read.
MUSCLES = tuple(_MODELS)
_CURVES = {
    "ActiveForceLengthCurve", "FiberForceLengthCurve", "ForceVelocityCurve", "TendonForceLengthCurve",
    "ForceVelocityInverseCurve",
}  # fmt: skip
_COMMON = {
    "appliesForce", "isDisabled", "min_control", "max_control", "GeometryPath", "optimal_force",
    "max_isometric_force", "optimal_fiber_length", "tendon_slack_length", "pennation_angle_at_optimal",
    "max_contraction_velocity", "ignore_tendon_compliance", "ignore_activation_dynamics", "activation_time_constant",
    "deactivation_time_constant", "minimum_activation", "default_activation", "default_fiber_length", "components",
    "path", "FunctionBasedPath", "MuscleFirstOrderActivationDynamicModel", "MuscleSecondOrderActivationDynamicModel",
    "MuscleFixedWidthPennationModel",
}  # fmt: skip
#: Properties of a single muscle model: name in the file, and OpenSim's own value where the file has none.
_SHAPES: dict[str, dict[str, float]] = {
    "thelen": {
        "FmaxTendonStrain": 0.04, "FmaxMuscleStrain": 0.6, "KshapeActive": 0.45, "KshapePassive": 5.0, "Af": 0.25,
        "Flen": 1.4, "fv_linear_extrap_threshold": 0.95, "maximum_pennation_angle": float(np.arccos(0.1)),
    },
    "millard": {"fiber_damping": 0.1, "maximum_pennation_angle": float(np.arccos(0.1))},
    "degroote": {
        "active_force_width_scale": 1.0, "fiber_damping": 0.0, "passive_fiber_strain_at_one_norm_force": 0.6,
        "tendon_strain_at_one_norm_force": 0.049,
    },
}  # fmt: skip
_MORE = {
    "thelen": set(),
    "millard": _CURVES,
    "degroote": {"ignore_passive_fiber_force", "tendon_compliance_dynamics_mode", "default_normalized_tendon_force"},
}
#: Curves of Millard's muscles whose strain at one normalised force is taken over: its name here, OpenSim's own value.
_STRAINS = (
    ("FiberForceLengthCurve", "passive_fiber_strain_at_one_norm_force", 0.7),
    ("TendonForceLengthCurve", "tendon_strain_at_one_norm_force", 0.049),
)
_DRIVE = {
    "appliesForce", "isDisabled", "min_control", "max_control", "optimal_force", "coordinate", "socket_coordinate",
}  # fmt: skip


#: The forces that are read here.
FORCES = {*MUSCLES, "CoordinateActuator", *_UNUSED, *PASSIVE}


def is_off(element: Element) -> bool:
    """Whether a force is switched off."""
    return not element.flag("appliesForce", True) or element.flag("isDisabled", False)


def read_forces(
    elements: Sequence[Element], bodies: set[str], coordinates: set[str], wraps: Mapping[str, WrapObject]
) -> tuple[tuple[OsimMuscle, ...], tuple[CoordinateActuator, ...], tuple[str, ...]]:
    """Muscles, drives, and notes, from the forces that are switched on."""
    muscles: list[OsimMuscle] = []
    drives: list[CoordinateActuator] = []
    notes: list[str] = []
    names_by_kind: dict[str, list[str]] = {}
    for element in elements:
        if element.tag in _MODELS:
            muscles.append(_muscle(element, bodies, coordinates, wraps))
        elif element.tag == "CoordinateActuator":
            drives.append(_drive(element, coordinates))
        elif element.tag in _UNUSED:
            names_by_kind.setdefault(_UNUSED[element.tag], []).append(element.name)
        elif element.tag not in PASSIVE:
            raise element.error("is not a supported force; switch it off (appliesForce) if it does not matter")
    if any(muscle.model == "millard" for muscle in muscles):
        notes.append("Millard2012 muscles are evaluated with the curves of De Groote et al. (2016)")
    if by_function := [muscle.name for muscle in muscles if muscle.function]:
        notes.append(
            "muscles whose lengths are functions of coordinates are not drawn and press on no joint, as in OpenSim:"
            f" {', '.join(by_function)}"
        )
    if drives:
        drive_names = ", ".join(drive.name for drive in drives)
        notes.append(f"drives of coordinates do not take part in the sharing: {drive_names}")
    notes += [f"{kind}: {', '.join(names)}" for kind, names in names_by_kind.items()]
    return tuple(muscles), tuple(drives), tuple(notes)


def _drive(element: Element, coordinates: set[str]) -> CoordinateActuator:
    refuse_other_children(element, _DRIVE)
    coordinate = last_name(element.word("coordinate") or element.word("socket_coordinate"))
    if coordinate not in coordinates:
        raise element.error(f"drives '{coordinate}', which is not a coordinate")
    optimal = element.number("optimal_force", 1.0)
    low = element.number("min_control", -np.inf, infinite=True)
    high = element.number("max_control", np.inf, infinite=True)
    return CoordinateActuator(element.name, coordinate, optimal, low, high)


def _muscle(
    element: Element,
    bodies: set[str],
    coordinates: set[str],
    wraps: Mapping[str, WrapObject],
) -> OsimMuscle:
    model = _MODELS[element.tag]
    shapes = _SHAPES[model]
    refuse_other_children(element, _COMMON | set(shapes) | _MORE[model])

    number = element.number

    def positive(tag: str, otherwise: float | None = None, least: float = 0.0) -> float:
        value = number(tag, otherwise)
        if not least < value < np.inf:
            bound = f"above {least:g}" if least else "positive"
            raise (element.find(tag) or element).error(f"{tag} must be {bound}, not {value:g}")
        return value

    function = read_path_function(element, coordinates)
    points, wrap_uses = ((), ()) if function else read_path(element, bodies, coordinates, wraps)
    pennation = number("pennation_angle_at_optimal", 0.0)
    if not 0.0 <= pennation < np.pi / 2:
        raise element.need("pennation_angle_at_optimal").error(f"{pennation:g} rad is not between 0 and a right angle")
    lowest, highest = number("min_control", 0.01), number("max_control", 1.0)
    if not 0.0 <= lowest <= highest <= 1.0:
        raise element.error(f"controls from {lowest:g} to {highest:g} are not within 0 and 1")
    shape = {name: _shape(name, positive, number, value) for name, value in shapes.items()}
    if model == "millard":
        for curve, name, usual in _STRAINS:
            holder = element.find(curve)
            shape[name] = usual if holder is None else holder.number("strain_at_one_norm_force", usual)
    if model == "degroote":
        shape["ignore_passive_fiber_force"] = float(element.flag("ignore_passive_fiber_force", False))
    return OsimMuscle(
        name=element.name,
        model=model,  # type: ignore[arg-type]
        points=points,
        wraps=wrap_uses,
        force=positive("max_isometric_force"),
        fibre=positive("optimal_fiber_length"),
        slack=positive("tendon_slack_length"),
        pennation=pennation,
        fastest=positive("max_contraction_velocity", 10.0),
        min_control=lowest,
        max_control=highest,
        rigid=element.flag("ignore_tendon_compliance", False),
        rise=positive("activation_time_constant", 0.015),
        fall=positive("deactivation_time_constant", 0.060 if model == "degroote" else 0.050),
        shape=shape,
        function=function,
    )


def _shape(name: str, positive: Callable[..., float], number: Callable[..., float], value: float) -> float:
    """A constant of a curve: a positive one, but for dampings and thresholds that may be 0."""
    if name in ("fiber_damping", "fv_linear_extrap_threshold"):
        return number(name, value)
    return positive(name, value, 1.0 if name == "Flen" else 0.0)
