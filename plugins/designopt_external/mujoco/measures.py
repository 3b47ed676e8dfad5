"""InputSignals of a simulation: sensors, actuator forces, energies, contacts, positions and velocities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, Required, TypedDict

import numpy as np

from designopt.plugin import InvalidSetting, Quantity, closest
from designopt.study.language import units
from designopt_external.mujoco.specification import UnusableModel, find_element
from designopt_external.reductions import ReductionSection

Energy = Literal["kinetic", "potential", "total"]
Contact = Literal["force", "depth", "count"]
Read = Callable[[], float]

#: Keys of measures, each with the unit of its number if it does not depend on the element.
MEASURES = {"sensor": "", "actuator": "", "energy": "J", "contact": "", "position": "", "velocity": ""}
CONTACT_UNITS = {"force": "N", "depth": "m", "count": ""}


class MeasureSection(TypedDict, total=False):
    """A signal: one of sensor, actuator, energy, contact, position, velocity."""

    sensor: Annotated[str, Quantity("", "name of a sensor")]
    actuator: Annotated[str, Quantity("", "name of an actuator: its force")]
    energy: Annotated[Energy, Quantity("", "energy of the model")]
    contact: Annotated[Contact, Quantity("", "sum of normal forces, maximum depth, or number of contacts")]
    between: Annotated[list[str], Quantity("", "contact: geoms, at least one in a contact, two: both; default all")]
    position: Annotated[str, Quantity("", "joint/NAME, body/NAME or site/NAME")]
    velocity: Annotated[str, Quantity("", "joint/NAME")]
    component: Annotated[int, Quantity("", "of a vector, from 0; default: its magnitude", ge=0)]
    unit: Annotated[str, Quantity("", "unit of the number in MuJoCo; default: that of energies and contacts, or none")]


class MujocoOutputSection(MeasureSection, ReductionSection, total=False):
    """An output: a signal and its reduction."""


class SignalArraySection(MeasureSection, total=False):
    """An array: a signal over time."""

    meaning: Annotated[str, Quantity("", "for tables and the report")]


class AttributeSection(TypedDict, total=False):
    """A design input or a condition: the number that it sets."""

    set: Required[Annotated[str, Quantity("", "path, as joint/knee/stiffness, geom/shank/size/1 or initial/knee")]]
    unit: Annotated[str, Quantity("", "unit of the number in MuJoCo; default none")]
    meaning: Annotated[str, Quantity("", "for tables and the report")]


def unit_of(section: Mapping[str, Any]) -> str:
    """The unit of a signal."""
    if "unit" in section:
        return str(section["unit"])
    if "contact" in section:
        return CONTACT_UNITS[section["contact"]]
    return next((unit for key, unit in MEASURES.items() if key in section), "")


def check(spec: Any, compiled: Any, section: Mapping[str, Any], at: str) -> Iterator[InvalidSetting]:
    """The mistakes in a measure of the setting `at`, ``outputs.grip``."""
    keys = [key for key in MEASURES if key in section]
    if len(keys) != 1:
        message = f"has {' and '.join(keys)}; remove all but one" if keys else f"needs one of {', '.join(MEASURES)}"
        yield InvalidSetting(at, message)
        return
    if "between" in section and keys[0] != "contact":
        yield InvalidSetting(f"{at}.between", "is for contacts; remove it, or write contact: force")
    yield from check_unit(section, at)
    key = keys[0]
    try:
        size = _size(spec, compiled, section)
    except UnusableModel as error:
        yield InvalidSetting(f"{at}.{'between' if key == 'contact' else key}", str(error))
        return
    if section.get("component", 0) >= size:
        parts = f"{size} components, from 0" if size > 1 else "one number"
        yield InvalidSetting(f"{at}.component", f"is {section['component']}, and the {key} has {parts}")


def check_unit(section: Mapping[str, Any], at: str) -> Iterator[InvalidSetting]:
    """The mistake in the unit of a section."""
    try:
        units.check(section.get("unit", ""))
    except units.UnitError as error:
        yield InvalidSetting(f"{at}.unit", str(error))


def _size(spec: Any, compiled: Any, section: Mapping[str, Any]) -> int:
    """The number of components of a signal. Raises `UnusableModel` for an element that does not exist."""
    for key in ("sensor", "actuator"):
        if key in section:
            find_element(spec, key, section[key])
            return int(compiled.sensor(section[key]).dim[0]) if key == "sensor" else 1
    if len(section.get("between", ())) > 2:
        raise UnusableModel("a contact is between two geoms; name one or two")
    for name in section.get("between", ()):
        find_element(spec, "geom", name)
    for key, kinds in (("position", ("joint", "body", "site")), ("velocity", ("joint",))):
        if key in section:
            kind, _, name = section[key].partition("/")
            if kind not in kinds:
                near = closest(kind, kinds)
                forms = " or ".join(f"{k}/NAME" for k in kinds)
                raise UnusableModel(f"'{section[key]}' is not {forms}" + (f"; did you mean '{near}'?" if near else ""))
            find_element(spec, kind, name)
            return len(compiled.joint(name).qpos0) if kind == "joint" else 3
    return 1


def reader(model: Any, data: Any, section: Mapping[str, Any]) -> Read:
    """A function that returns the current number of a signal."""
    if "energy" in section:
        kinds = {"potential": [0], "kinetic": [1], "total": [0, 1]}[section["energy"]]
        return lambda: float(data.energy[kinds].sum())
    if "contact" in section:
        return _contact(model, data, section["contact"], [model.geom(n).id for n in section.get("between", ())])
    if "actuator" in section:
        vector = data.actuator(section["actuator"]).force
    elif "sensor" in section:
        vector = data.sensor(section["sensor"]).data
    elif "velocity" in section:
        vector = data.joint(section["velocity"].partition("/")[2]).qvel
    else:
        kind, _, name = section["position"].partition("/")
        vector = data.joint(name).qpos if kind == "joint" else getattr(data, kind)(name).xpos
    if "component" in section or len(vector) == 1:
        position = section.get("component", 0)
        return lambda: float(vector[position])
    return lambda: float(np.linalg.norm(vector))


def _contact(model: Any, data: Any, quantity: str, geoms: list[int]) -> Read:
    import mujoco

    force = np.zeros(6)

    def read() -> float:
        total = 0.0
        for i in range(data.ncon):
            contact = data.contact[i]
            if not all(geom in contact.geom for geom in geoms):
                continue
            if quantity == "force":
                mujoco.mj_contactForce(model, data, i, force)
                total += force[0]
            elif quantity == "depth":
                total = max(total, -float(contact.dist))
            else:
                total += 1.0
        return float(total)

    return read
