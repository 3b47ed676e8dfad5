"""Numbers of a mechanism that a study varies, by the paths that they have in a mechanism file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from designopt.counts import first_of
from designopt.lazy import casadi as ca
from designopt.plugin import closest
from designopt_mechanics.body import Body, is_number, tensor
from designopt_mechanics.coordinate_laws import CoordinateLaw
from designopt_mechanics.mechanism.mechanism import Mechanism, MechanismParameter
from designopt_mechanics.springs import Spring, WirePull
from designopt_mechanics.tree import Coordinate, Frame, Point, Tree
from designopt_mechanics.wires import Wire

#: Paths that a message lists.
_SHOWN = 8


@dataclass(eq=False)
class _Numbers:
    """Visits the numbers of a mechanism: those in `by_path` become parameters, all `paths` are noted."""

    by_path: Mapping[str, str]
    paths: dict[str, None] = field(default_factory=dict)
    parameters: dict[str, MechanismParameter] = field(default_factory=dict)

    def __call__(self, path: str, unit: str, value: Any) -> Any:
        """The number at `path` in `unit`, or the symbol in its place."""
        if not is_number(value):
            return value
        self.paths[path] = None
        if path not in self.by_path:
            return value
        parameter = MechanismParameter(self.by_path[path], unit, float(value))
        self.parameters[parameter.name] = parameter
        return parameter.symbol

    def row(self, path: str, unit: str, values: Any) -> Any:
        """Three numbers, as they are or as a column of expressions."""
        if not is_number(values):
            return values
        row = [self(f"{path}.{i}", unit, value) for i, value in enumerate(values)]
        return values if is_number(row) else ca.vertcat(*row)

    def body(self, path: str, body: Body | None) -> Body | None:
        if body is None:
            return None
        mass, centre = self(f"{path}.mass", "kg", body.mass), self.row(f"{path}.centre", "m", body.centre)
        inertia = body.inertia
        if is_number(inertia):
            moments = ca.SX(tensor(inertia))
            for i in range(3):
                for j in range(i, 3):
                    moments[i, j] = moments[j, i] = self(f"{path}.inertia.{i}.{j}", "kg m^2", float(moments[i, j]))
            inertia = inertia if moments.is_constant() else moments
        return replace(body, mass=mass, centre=centre, inertia=inertia)

    def frame(self, frame: Frame) -> Frame:
        path = f"frames.{frame.name}"
        position = self.row(f"{path}.place", "m", frame.position)
        return replace(frame, position=position, body=self.body(f"{path}.body", frame.body))

    def law(self, coordinate: Coordinate, law: CoordinateLaw) -> CoordinateLaw:
        unit, effort = coordinate.unit, coordinate.effort_unit
        units = {"damping": f"{effort} s/{unit}", "friction": effort, "stiffness": f"{effort}/{unit}", "rest": unit}
        path = f"coordinates.{coordinate.name}"
        values = {key: self(f"{path}.{key}", key_unit, getattr(law, key)) for key, key_unit in units.items()}
        return replace(law, **values, ratio=self(f"{path}.gear.ratio", "", law.ratio))

    def wire(self, path: str, wire: Wire) -> Wire:
        points = [Point(p.frame, self.row(f"{path}.points.{i}.at", "m", p.position)) for i, p in enumerate(wire.points)]
        return Wire(wire.name, points, wire.overs, wire.largest_tension)

    def spring(self, spring: Spring | WirePull) -> Spring | WirePull:
        path = f"springs.{spring.wire.name}"
        if isinstance(spring, WirePull):
            return spring
        units = {"stiffness": "N/m", "rest": "m", "damping": "N s/m"}
        values = {key: self(f"{path}.{key}", unit, getattr(spring, key)) for key, unit in units.items()}
        return replace(spring, wire=self.wire(path, spring.wire), **values)


def no_path(text: str, paths: Iterable[str]) -> str:
    """A sentence for a `text` that is none of the `paths` of numbers that can vary: it names the nearest one, or those
    that begin alike."""
    all_paths = list(paths)
    within = any(path.startswith(f"{text}.") for path in all_paths)
    if not within and (near := closest(text, all_paths)):
        return f"'{text}' is not the path of a number that can vary; did you mean '{near}'?"
    parts = text.split(".")
    heads = [".".join(parts[:count]) + "." for count in range(len(parts), 0, -1)] + [""]
    candidates = next((s for head in heads if (s := [path for path in all_paths if path.startswith(head)])), [])
    return f"'{text}' is not the path of a number that can vary; there are {first_of(candidates, _SHOWN)}"


def with_parameters(mechanism: Mechanism, by_path: Mapping[str, str]) -> Mechanism:
    """The mechanism with a parameter in place of each number that `by_path` names: paths by the parameters' names.

    Paths are those of a mechanism file: ``frames.<link>.body.mass`` (kg), ``.body.centre.0`` (m), ``.body.inertia.0.1``
    (kg m^2, about the centre in the axes of the frame), ``frames.<link>.place.0`` (m); ``coordinates.<joint>.damping``,
    ``friction``, ``stiffness``, ``rest``, ``gear.ratio``; ``wires.<tendon>.points.1.at.0``,
    ``springs.<tendon>.stiffness``, ``rest``, ``damping``; ``gravity.2``. Raises `ValueError` for another path.
    """
    numbers = _Numbers({path: name for name, path in by_path.items()})
    if len(numbers.by_path) < len(by_path):
        raise ValueError(f"two of {', '.join(by_path)} have the same path; one parameter per number")
    tree = mechanism.tree
    frames = tuple(numbers.frame(frame) for frame in tree.frames)
    laws = {
        c.name: numbers.law(c, mechanism.laws.get(c.name, CoordinateLaw())) for c in tree.coordinates if c.unit != "1"
    }
    wires = tuple(numbers.wire(f"wires.{wire.name}", wire) for wire in mechanism.wires)
    springs = tuple(numbers.spring(spring) for spring in mechanism.springs)
    gravity = numbers.row("gravity", "m/s^2", mechanism.gravity)
    for path in numbers.by_path:
        if path not in numbers.paths:
            raise ValueError(no_path(path, numbers.paths))
    return replace(
        mechanism,
        tree=Tree(tree.coordinates, frames),
        laws=laws,
        wires=wires,
        springs=springs,
        gravity=gravity,
        parameters=(*mechanism.parameters, *numbers.parameters.values()),
    )
