"""A laboratory made by formula: a small walker of two legs with twenty muscles, a static pose, trials and plates.

The joint angles are those of normal walking; the ground carries the weight and the accelerations of the trial, under
the feet. `write` made the files of ``studies/laboratory``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from designopt_laboratory.curves.pool import normal_walk
from designopt_laboratory.model import LaboratoryTrial
from designopt_muscle.geometry.kinematics import Kinematics, kinematics
from designopt_muscle.models.dynamics import Dynamics
from designopt_muscle.osim.markers import OsimMarker, read_markers
from designopt_muscle.osim.model import OsimModel
from designopt_muscle.osim.read import read_model
from designopt_recordings.files.write import motion_text, trc_text
from designopt_recordings.placement import moved
from designopt_recordings.plate import ForcePlate
from designopt_recordings.recording import Recording
from designopt_recordings.table import TimeTable

RATE = 50.0
#: Bodies by name: mass (kg), centre (m), inertia (kg m^2).
_BODIES = {
    "pelvis": (42.0, (0.0, 0.25, 0.0), (2.4, 0.6, 2.5)),
    "femur": (8.0, (0.0, -0.18, 0.0), (0.13, 0.03, 0.13)),
    "tibia": (3.5, (0.0, -0.18, 0.0), (0.05, 0.005, 0.05)),
    "calcn": (1.2, (0.08, -0.02, 0.0), (0.001, 0.004, 0.004)),
}
#: Muscles of the right leg: force (N), optimal fibre and tendon slack (m), points (body, x, y, z).
_MUSCLES = {
    "iliopsoas": (4000, 0.11, 0.136,
        (("pelvis", -0.02, 0.06, 0.05), ("pelvis", 0.03, -0.03, 0.08), ("femur", 0.0, -0.06, -0.01))),
    "glut_max": (5000, 0.15, 0.076,
        (("pelvis", -0.13, 0.03, 0.06), ("pelvis", -0.12, -0.07, 0.09), ("femur", -0.02, -0.1, 0.03))),
    "glut_med": (4500, 0.08, 0.066, (("pelvis", -0.04, 0.05, 0.11), ("femur", -0.01, -0.01, 0.055))),
    "add_long": (1500, 0.13, 0.08, (("pelvis", 0.0, -0.09, 0.02), ("femur", 0.01, -0.21, 0.01))),
    "hamstrings": (4000, 0.11, 0.305, (("pelvis", -0.11, -0.1, 0.07), ("tibia", -0.03, -0.04, 0.0))),
    "rect_fem": (1800, 0.11, 0.4,
        (("pelvis", 0.01, -0.03, 0.09), ("femur", 0.045, -0.37, 0.0), ("tibia", 0.035, -0.06, 0.0))),
    "vasti": (6000, 0.09, 0.218,
        (("femur", 0.03, -0.17, 0.02), ("femur", 0.045, -0.37, 0.0), ("tibia", 0.035, -0.06, 0.0))),
    "gastroc": (3500, 0.07, 0.355, (("femur", -0.02, -0.38, 0.0), ("calcn", -0.045, -0.01, 0.0))),
    "soleus": (6000, 0.06, 0.248, (("tibia", -0.01, -0.11, 0.0), ("calcn", -0.045, -0.01, 0.0))),
    "tib_ant": (1500, 0.09, 0.216,
        (("tibia", 0.02, -0.12, 0.0), ("tibia", 0.035, -0.37, 0.0), ("calcn", 0.06, -0.02, 0.0))),
}  # fmt: skip
#: Markers of the right side, and in the middle.
_MARKERS = {
    "ASI": ("pelvis", 0.03, 0.02, 0.12), "PSI": ("pelvis", -0.15, 0.03, 0.05), "THI": ("femur", 0.03, -0.2, 0.08),
    "KNE": ("femur", 0.0, -0.4, 0.06), "TIB": ("tibia", 0.04, -0.2, 0.05), "ANK": ("tibia", 0.0, -0.4, 0.05),
    "HEE": ("calcn", -0.05, -0.02, 0.0), "TOE": ("calcn", 0.17, -0.03, 0.01), "MT5": ("calcn", 0.13, -0.04, 0.06),
}  # fmt: skip
_JOINTS = (
    ("hip", "pelvis", "femur", (-0.06, -0.08, 0.085), ("hip_flexion", "hip_adduction", "hip_rotation")),
    ("knee", "femur", "tibia", (0.0, -0.4, 0.0), ("knee_angle",)),
    ("ankle", "tibia", "calcn", (0.0, -0.4, 0.0), ("ankle_angle",)),
)
_ROOT = ("pelvis_tilt", "pelvis_list", "pelvis_rotation", "pelvis_tx", "pelvis_ty", "pelvis_tz")


@dataclass(frozen=True, eq=False)
class Walk:
    """A trial of the walker: markers and plates, and its true coordinates (n,) by name."""

    recording: Recording
    plates: tuple[ForcePlate, ...]
    values: dict[str, np.ndarray]

    def turned(self, rotation: np.ndarray, shift: tuple[float, float, float]) -> Walk:
        """The same trial in another laboratory."""
        turned_recording = moved(replace(self.recording, plates=self.plates), rotation, shift)
        return replace(self, recording=replace(turned_recording, plates=()), plates=turned_recording.plates)

    def mirrored(self) -> Walk:
        """The walk of the mirror image: left is right."""
        flip = np.array([1.0, 1.0, -1.0])
        names = tuple({"R": "L", "L": "R"}[name[0]] + name[1:] for name in self.recording.marker_names)
        recording = replace(self.recording, marker_names=names, markers=self.recording.markers * flip)
        plates = tuple(replace(p, force=p.force * flip, moment=-p.moment * flip) for p in self.plates)
        return replace(self, recording=recording, plates=plates)

    def trc(self) -> bytes:
        """The markers as a TRC file, in m to 0.01 mm."""
        return trc_text(replace(self.recording, markers=np.round(self.recording.markers, 5))).encode()

    def mot(self, digits: int = 4) -> bytes:
        """The plates as a table of ground reactions, at the rate of the markers."""
        columns, names = [], []
        for k, plate in enumerate(self.plates, 1):
            f, m = plate.force, plate.moment
            y = np.where(f[:, 1:2] > 1e-6, f[:, 1:2], np.inf)
            point = np.stack([m[:, 2] / y[:, 0], np.full(len(m), plate.level), -m[:, 0] / y[:, 0]], axis=1)
            point[:, 0] += plate.level * f[:, 0] / y[:, 0]
            point[:, 2] += plate.level * f[:, 2] / y[:, 0]
            torque = np.where(f[:, 1:2] > 1e-6, m - np.cross(point, f), 0.0)
            for stem, part in (
                (f"ground_force_{k}_v", f),
                (f"ground_force_{k}_p", point),
                (f"ground_torque_{k}_", torque),
            ):
                names += [f"{stem}{axis}" for axis in "xyz"]
                columns.append(part)
        table = TimeTable(self.recording.time, tuple(names), np.round(np.hstack(columns), digits), title="plates")
        return motion_text(table).encode()


def model_text() -> bytes:
    """The walker as an ``.osim`` file."""
    bodies, joints, muscles, markers = (
        [_body("pelvis", "")],
        [_joint("ground_pelvis", "/ground", "pelvis", (0, 0, 0), _ROOT, 1)],
        [],
        [],
    )
    for side, sign in (("r", 1), ("l", -1)):
        for name in ("femur", "tibia", "calcn"):
            bodies.append(_body(name, f"_{side}"))
        for name, parent, child, at, coordinates in _JOINTS:
            above = parent if parent == "pelvis" else f"{parent}_{side}"
            names = tuple(f"{c}_{side}" for c in coordinates)
            joints.append(
                _joint(
                    f"{name}_{side}", f"/bodyset/{above}", f"{child}_{side}", (at[0], at[1], sign * at[2]), names, sign
                )
            )
        muscles += [_muscle(name, side, sign) for name in _MUSCLES]
        markers += [_marker(name, side, sign) for name in _MARKERS]
    return (
        '<?xml version="1.0" encoding="UTF-8" ?>\n<OpenSimDocument Version="40000">\n<Model name="walker">\n'
        "<credits>Made by formula for designopt; the numbers are those of no person.</credits>\n"
        "<gravity>0 -9.81 0</gravity>\n"
        f"<BodySet><objects>\n{''.join(bodies)}</objects></BodySet>\n<JointSet><objects>\n{''.join(joints)}</objects>"
        f"</JointSet>\n<ForceSet><objects>\n{''.join(muscles)}</objects></ForceSet>\n<MarkerSet><objects>\n"
        f"{''.join(markers)}</objects></MarkerSet>\n</Model>\n</OpenSimDocument>\n"
    ).encode()


def _three(values: tuple[float, ...]) -> str:
    return " ".join(f"{v:g}" for v in values)


def _body(name: str, side: str) -> str:
    mass, centre, inertia = _BODIES[name]
    return (
        f'<Body name="{name}{side}"><mass>{mass:g}</mass><mass_center>{_three(centre)}</mass_center>'
        f"<inertia>{_three(inertia)} 0 0 0</inertia></Body>\n"
    )


def _joint(
    name: str, parent: str, child: str, at: tuple[float, float, float], coordinates: tuple[str, ...], sign: int
) -> str:
    turns = ((0, 0, 1), (sign, 0, 0), (0, sign, 0))
    units = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    line = "<LinearFunction><coefficients>1 0</coefficients></LinearFunction>"
    still = "<Constant><value>0</value></Constant>"
    axes = ""
    for k in range(6):
        kind, axis = ("rotation", turns[k]) if k < 3 else ("translation", units[k - 3])
        driver = coordinates[k] if k < len(coordinates) else ""
        axes += (
            f'<TransformAxis name="{kind}{k % 3 + 1}"><coordinates>{driver}</coordinates><axis>{_three(axis)}</axis>'
            f"{line if driver else still}</TransformAxis>"
        )
    stated = "".join(
        f'<Coordinate name="{c}"><default_value>{0.9 if c == "pelvis_ty" else 0:g}</default_value>'
        f"<range>{'-10 10' if c[-3:-1] == '_t' else '-2.2 2.2'}</range></Coordinate>"
        for c in coordinates
    )
    return (
        f'<CustomJoint name="{name}"><socket_parent_frame>parent_offset</socket_parent_frame>'
        f"<socket_child_frame>/bodyset/{child}</socket_child_frame><coordinates>{stated}</coordinates>"
        f'<frames><PhysicalOffsetFrame name="parent_offset"><socket_parent>{parent}</socket_parent>'
        f"<translation>{_three(at)}</translation></PhysicalOffsetFrame></frames>"
        f"<SpatialTransform>{axes}</SpatialTransform></CustomJoint>\n"
    )


def _muscle(name: str, side: str, sign: int) -> str:
    force, fibre, slack, points = _MUSCLES[name]
    path = "".join(
        f'<PathPoint name="{name}_{side}-P{i}"><socket_parent_frame>/bodyset/{_of_side(body, side)}'
        f"</socket_parent_frame><location>{_three((x, y, sign * z))}</location></PathPoint>"
        for i, (body, x, y, z) in enumerate(points, 1)
    )
    return (
        f'<Thelen2003Muscle name="{name}_{side}"><GeometryPath><PathPointSet><objects>{path}</objects></PathPointSet>'
        f"</GeometryPath><max_isometric_force>{force}</max_isometric_force><optimal_fiber_length>{fibre}"
        f"</optimal_fiber_length><tendon_slack_length>{slack}</tendon_slack_length></Thelen2003Muscle>\n"
    )


def _marker(name: str, side: str, sign: int) -> str:
    body, x, y, z = _MARKERS[name]
    return (
        f'<Marker name="{side.upper()}{name}"><socket_parent_frame>/bodyset/{_of_side(body, side)}'
        f"</socket_parent_frame><location>{_three((x, y, sign * z))}</location><fixed>false</fixed></Marker>\n"
    )


def _of_side(body: str, side: str) -> str:
    return body if body == "pelvis" else f"{body}_{side}"


def walk(speed: float = 1.25, cycles: float = 2.4, seed: int = 0, noise: float = 0.0) -> Walk:
    """A walk at `speed` m/s with white `noise` (m) of the markers; faster ones take longer and quicker steps."""
    model = read_model(model_text())
    duration = 1.1 * (1.25 / speed) ** 0.5
    time = np.arange(int(cycles * duration * RATE)) / RATE
    values = _coordinates(time / duration, time * speed, speed / 1.25)
    plates = _plates(model, values, time, time / duration)
    return Walk(_recorded(model, values, time, noise, seed), plates, values)


def standing() -> Walk:
    """The static pose: every angle 0."""
    model = read_model(model_text())
    time = np.arange(20) / RATE
    values = {name: np.full(len(time), 0.9 if name == "pelvis_ty" else 0.0) for name in model.free}
    return Walk(_recorded(model, values, time, 0.0, 0), (), values)


def _coordinates(phase: np.ndarray, way: np.ndarray, size: float) -> dict[str, np.ndarray]:
    values = {
        "pelvis_tx": way,
        "pelvis_ty": 0.9 + 0.015 * np.cos(4.0 * np.pi * (phase - 0.3)),
        "pelvis_tz": 0.02 * np.sin(2.0 * np.pi * (phase - 0.05)),
        "pelvis_tilt": np.full(len(phase), 0.03),
        "pelvis_list": 0.06 * np.sin(2.0 * np.pi * phase),
        "pelvis_rotation": 0.08 * np.cos(2.0 * np.pi * phase),
    }
    for side, start in (("r", 0.0), ("l", 0.5)):
        for name, sign in (("hip_flexion", 1.0), ("knee_angle", -1.0), ("ankle_angle", 1.0)):
            curve = normal_walk(name, np.zeros(101))
            assert curve is not None
            harmonics = np.fft.rfft(np.radians(curve[:-1])) / 100.0
            waves = harmonics[1:5, None] * np.exp(2j * np.pi * np.arange(1, 5)[:, None] * (phase - start))
            values[f"{name}_{side}"] = sign * (harmonics[0].real + size * 2.0 * waves.real.sum(axis=0))
        values[f"hip_adduction_{side}"] = 0.05 * np.sin(2.0 * np.pi * (phase - start))
        values[f"hip_rotation_{side}"] = 0.04 * np.cos(2.0 * np.pi * (phase - start))
    return values


def _recorded(model: OsimModel, values: dict[str, np.ndarray], time: np.ndarray, noise: float, seed: int) -> Recording:
    markers: tuple[OsimMarker, ...] = read_markers(model_text())
    poses = kinematics(model, values)
    at = np.stack([poses.position(m.body, m.location) for m in markers], axis=1)
    at = at + noise * np.random.default_rng(seed).standard_normal(at.shape)
    return Recording(RATE, time, tuple(m.name for m in markers), at)


def _plates(
    model: OsimModel, values: dict[str, np.ndarray], time: np.ndarray, phase: np.ndarray
) -> tuple[ForcePlate, ...]:
    """One plate for each foot, which carries its share of the force that weight and accelerations need."""
    step = 1.0 / RATE
    moved_values = {
        name: (
            v,
            np.gradient(v, step, edge_order=2),
            np.gradient(np.gradient(v, step, edge_order=2), step, edge_order=2),
        )
        for name, v in values.items()
    }
    dynamics = Dynamics.from_model(model, moved_values, {})
    needed = dynamics.moments()
    force = needed[:, [dynamics.coordinates.index(f"pelvis_t{axis}") for axis in "xyz"]]
    poses = kinematics(model, values)
    plates = []
    for name, side, start in (("1", "r", 0.0), ("2", "l", 0.5)):
        share, way = _stance((phase - start) % 1.0)
        point = _under(poses, f"calcn_{side}", way)
        load = force * share[:, None]
        plates.append(ForcePlate(name, RATE, load, np.cross(point, load), level=0.0))
    return tuple(plates)


def _stance(phase: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Share of the load of a foot that strikes at phase 0 and leaves at 0.6, and its way from heel to toe, 0 to 1."""
    rise = np.clip(phase / 0.1, 0.0, 1.0)
    fall = np.clip((0.6 - phase) / 0.1, 0.0, 1.0)
    smooth = [x * x * (3.0 - 2.0 * x) for x in (rise, fall)]
    return np.minimum(*smooth), np.clip(phase / 0.6, 0.0, 1.0)


def _under(poses: Kinematics, foot: str, way: np.ndarray) -> np.ndarray:
    along = np.stack([-0.03 + 0.16 * way, np.zeros(len(way)), np.zeros(len(way))], axis=1)
    point = poses.position(foot, along)
    point[:, 1] = 0.0
    return point


def raise_mistake(model: LaboratoryTrial, trial: Mapping[str, Any]) -> None:
    """Raise the first mistake of a trial; nothing where it has none."""
    for mistake in model.check_scenario(trial):
        raise mistake


def write(folder: Path) -> None:
    """A folder as a laboratory has it: generic model, static pose, two trials, their plates."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "walker.osim").write_bytes(model_text())
    (folder / "static.trc").write_bytes(standing().trc())
    for name, speed, seed in (("walk_slow", 1.1, 1), ("walk_fast", 1.4, 2)):
        trial = walk(speed, 2.9, seed=seed, noise=0.0005)
        (folder / f"{name}.trc").write_bytes(trial.trc())
        (folder / f"{name}_reactions.mot").write_bytes(trial.mot())
