"""The specification of a MuJoCo model from the files of a study, and its numeric attributes by path.

Only files that the study names are read, and plugins of MuJoCo (compiled code) are refused: a specification runs
nothing of the study.
"""

from __future__ import annotations

import importlib.util
import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from designopt.plugin import InputFile, closest

#: Kinds of elements with names, as `mujoco.MjSpec` calls them.
ELEMENTS = ("body", "joint", "geom", "site", "actuator", "tendon", "equality", "pair", "sensor", "mesh", "material")
#: First parts of paths that are no attributes, with what follows.
STATES = {"control": "ACTUATOR", "initial": "JOINT", "initial_velocity": "JOINT"}
#: Attributes that are polynomials in MuJoCo 4: a path without position is the linear coefficient.
POLYNOMIALS = ("stiffness", "damping")
#: Attributes of MJCF for position actuators, by the parameters that they set.
GAINS: Mapping[str, Sequence[tuple[str, int, float]]] = {
    "kp": (("gainprm", 0, 1.0), ("biasprm", 1, -1.0)),
    "kv": (("biasprm", 2, -1.0),),
}


class UnusableModel(ValueError):
    """The files are not a MuJoCo model, or it has no such element; the message is a sentence."""


def specification(file: InputFile, files: Sequence[InputFile]) -> Any:
    """The `mujoco.MjSpec` of an MJCF or URDF file; `files` are those that it includes or loads.

    Raises `UnusableModel`.
    """
    if importlib.util.find_spec("mujoco") is None:
        raise UnusableModel(f"{file.name}: needs MuJoCo; install it with: pip install 'designopt[mujoco]'")
    import mujoco

    available = {_base(item.name): item for item in files}
    if len(available) < len(files):
        raise UnusableModel("files: two files have the same name; MuJoCo finds files by name, so rename one of them")
    text = _checked_text(file, available)
    includes = {name: item.content for name, item in available.items() if name.endswith(".xml")}
    assets = {name: item.content for name, item in available.items() if not name.endswith(".xml")}
    for name in includes:
        _checked_text(available[name], available)
    try:
        spec = mujoco.MjSpec.from_string(text, include=includes, assets=assets)
        spec.compiler.usethread = 0
        spec.copy().compile()
    except ValueError as error:
        raise UnusableModel(f"{file.name}: {' '.join(str(error).split())}") from None
    return spec


def _base(name: str) -> str:
    return PurePosixPath(name.replace("\\", "/").rpartition(":")[2]).name


def _checked_text(file: InputFile, available: Mapping[str, InputFile]) -> str:
    """The text of an XML file that needs no other files than the `available` ones, and no plugins."""
    try:
        text = file.text()
        root = ET.fromstring(text)
    except UnicodeDecodeError:
        raise UnusableModel(f"{file.name}: is not a text file; give an MJCF or URDF file") from None
    except ET.ParseError as error:
        raise UnusableModel(f"{file.name}:{error.position[0]}: is not XML: {error}") from None
    if root.tag not in ("mujoco", "mujocoinclude", "robot"):
        raise UnusableModel(f"{file.name}: begins with <{root.tag}>; MJCF begins with <mujoco>, URDF with <robot>")
    for element in root.iter():
        if element.tag in ("plugin", "extension"):
            line = _line(text, f"<{element.tag}")
            raise UnusableModel(
                f"{file.name}:{line}: <{element.tag}> loads compiled code, which a study cannot bring; remove it"
            )
        for value in _file_names(element):
            line, name = _line(text, value), _base(value)
            if value.startswith("/") or ".." in PurePosixPath(value).parts:
                raise UnusableModel(
                    f"{file.name}:{line}: '{value}' is outside the study's folder; copy it there, and write {name}"
                )
            if name not in available:
                near = closest(name, available)
                hint = f"; did you mean '{near}'?" if near else f"; add it to the study: files: [{name}]"
                raise UnusableModel(f"{file.name}:{line}: needs the file '{name}'{hint}")
    return text


def _file_names(element: ET.Element) -> Iterator[str]:
    for key, value in element.attrib.items():
        if (key.startswith("file") and element.tag != "flag" and value) and not key.startswith("fileformat"):
            yield value.removeprefix("package://") if key == "filename" else value


def _line(text: str, part: str) -> int:
    return text[: max(text.find(part), 0)].count("\n") + 1


# --------------------------------------------------------------------------------------------------------- attributes


def check_path(spec: Any, path: str) -> None:
    """Check the path of an attribute, ``joint/knee/stiffness``, or of a state. Raises `UnusableModel`."""
    kind, *names = path.split("/")
    if kind in STATES:
        if len(names) != 1:
            raise UnusableModel(f"'{path}' has another form than {kind}/{STATES[kind]}")
        find_element(spec, "actuator" if kind == "control" else "joint", names[0])
        return
    assign(spec.copy(), path, None)


def assign(spec: Any, path: str, value: float | None) -> None:
    """Set the attribute at `path` of a specification; None only checks the path. Raises `UnusableModel`."""
    kind, *parts = path.split("/")
    if kind not in ELEMENTS or len(parts) not in (2, 3):
        near = closest(kind, [*ELEMENTS, *STATES])
        hint = f"did you mean '{near}'?" if near and near != kind else "as in joint/knee/stiffness or geom/shank/size/1"
        raise UnusableModel(f"'{path}' is not KIND/NAME/ATTRIBUTE or KIND/NAME/ATTRIBUTE/POSITION; {hint}")
    element, attribute = find_element(spec, kind, parts[0]), parts[1]
    if kind == "actuator" and attribute in GAINS:
        for parameter, position, sign in GAINS[attribute]:
            if value is not None:
                getattr(element, parameter)[position] = sign * value
        return
    numbers = _numbers(element)
    if attribute not in numbers:
        near = closest(attribute, numbers)
        hint = f"did you mean '{near}'?" if near else f"it has {', '.join(numbers)}"
        raise UnusableModel(f"{kind} '{parts[0]}' has no number '{attribute}'; {hint}")
    current = getattr(element, attribute)
    if isinstance(current, np.ndarray):
        if len(parts) == 2 and attribute not in POLYNOMIALS:
            raise UnusableModel(f"{attribute} has {len(current)} numbers; write the position from 0, as in {path}/0")
        position = _position(parts[2], len(current), path) if len(parts) == 3 else 0
        if value is not None:
            current[position] = value
        return
    if len(parts) == 3:
        raise UnusableModel(f"{attribute} is one number; write {'/'.join([kind, *parts[:2]])}")
    if value is not None:
        if kind == "body" and attribute == "mass":
            _set_mass(spec, element, value)
        else:
            setattr(element, attribute, int(value) if isinstance(current, int) else value)


def _position(text: str, count: int, path: str) -> int:
    if not text.isdigit() or int(text) >= count:
        raise UnusableModel(f"'{path}': the position is from 0 to {count - 1}, not {text}")
    return int(text)


def _numbers(element: Any) -> list[str]:
    """The names of the numeric attributes."""
    names = []
    for name in dir(element):
        if not name.startswith("_") and name not in ("id", "group", "userdata"):
            value = getattr(element, name)
            if (isinstance(value, np.ndarray) and value.dtype.kind in "fi") or type(value) in (float, int):
                names.append(name)
    return names


def _set_mass(spec: Any, body: Any, mass: float) -> None:
    """Set the mass of a body; an inertia that comes from its geoms is scaled with it."""
    if not body.explicitinertial:
        spec.adopt_inertial(body)
        ratio = mass / body.mass if body.mass else math.nan
        body.inertia = body.inertia * ratio
    body.mass = mass


def find_element(spec: Any, kind: str, name: str) -> Any:
    """The element of a kind by name. Raises `UnusableModel` with the nearest name."""
    element = getattr(spec, kind)(name)
    if element is None:
        plural = {"body": "bodies", "equality": "equalities", "mesh": "meshes"}.get(kind, f"{kind}s")
        names = [item.name for item in getattr(spec, plural) if item.name]
        near = closest(name, names)
        hint = f"did you mean '{near}'?" if near else f"there are {', '.join(names[:12]) or 'none with a name'}"
        raise UnusableModel(f"the model has no {kind} '{name}'; {hint}")
    return element
