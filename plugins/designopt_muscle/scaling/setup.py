"""How a generic model is scaled: measurements, factors by hand, the static pose; from OpenSim's set-up files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from designopt_mechanics.robot_files.xml import Element, parse

from designopt.plugin import Quantity as Q
from designopt_muscle.markers.tasks import IkTasks, read_tasks
from designopt_muscle.osim.poses import refuse_other_children, without_effect

#: Ways to find factors, in the order in which they are applied; a later one replaces the factors of an earlier one.
Method = Literal["measurements", "manualScale", "least_squares"]


@dataclass(frozen=True)
class Measurement:
    """One length of the body: the mean over `pairs` of markers of recorded distance / distance on the model.

    It scales `bodies` along axes ("XYZ" or some of them).
    """

    name: Annotated[str, Q("", "of the length")]
    pairs: Annotated[tuple[tuple[str, str], ...], Q("", "pairs of markers, whose factors are averaged")]
    bodies: Annotated[Mapping[str, str], Q("", "axes along which each body is scaled: XYZ or some of them")]


@dataclass(frozen=True, eq=False)
class ScaleSetup:
    """A scaling: `mass` of the subject in kg (None: masses stay), factors by `measurements`, and `manual` ones by body.

    `order` names the methods that are used. With `preserve_mass` the masses of the bodies keep their ratios, otherwise
    they follow the volumes; both are brought to `mass`. `window` (s) is the part of the static pose over which lengths
    are averaged. `placing` are the tasks of the pose in which markers are moved to where they were recorded; None: they
    stay. Elements of the file beside all these are `without_effect`, names of files too: the caller states the files.
    """

    mass: float | None = None
    measurements: tuple[Measurement, ...] = ()
    manual: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    order: tuple[Method, ...] = ("measurements", "manualScale")
    window: tuple[float, float] | None = None
    preserve_mass: bool = True
    placing: IkTasks | None = None
    name: str = ""
    without_effect: tuple[str, ...] = ()


_SCALER_TAGS = {"apply", "scaling_order", "MeasurementSet", "ScaleSet", "time_range",
                "preserve_mass_distribution"}  # fmt: skip
_PLACER_TAGS = {"apply", "IKTaskSet", "time_range"}


def read_scale_setup(content: bytes) -> ScaleSetup:
    """The set-up in a file of OpenSim's ``ScaleTool``.

    Raises `ModelError` with line and column for other files, unknown methods, pairs that are not two markers, and
    factors that are not positive. Parts that are switched off (``apply`` false) are left out.
    """
    root = parse(content)
    tool = root if root.tag == "ScaleTool" else root.find("ScaleTool")
    if tool is None:
        raise root.error("is not a scaling: <ScaleTool> within <OpenSimDocument> is expected")
    maker, scaler, placer = (tool.find(tag) for tag in ("GenericModelMaker", "ModelScaler", "MarkerPlacer"))
    mass = tool.number("mass", -1.0)
    scaling = scaler if scaler is not None and scaler.flag("apply", True) else Element("ModelScaler", {})
    active_placer = placer if placer is not None and placer.flag("apply", True) else None
    return ScaleSetup(
        mass if mass > 0.0 else None,
        tuple(_measurements(scaling)),
        _manual(scaling),
        _order(scaling),
        _window(scaling),
        scaling.flag("preserve_mass_distribution", False),
        None if active_placer is None else _placing(active_placer),
        tool.name,
        (
            *without_effect(tool, {"mass", "GenericModelMaker", "ModelScaler", "MarkerPlacer"}),
            *without_effect(maker, (), "GenericModelMaker/"),
            *without_effect(scaling, _SCALER_TAGS, "ModelScaler/"),
            *without_effect(active_placer, _PLACER_TAGS, "MarkerPlacer/"),
        ),
    )


def _order(scaling: Element) -> tuple[Method, ...]:
    methods: list[Method] = []
    for word in scaling.word("scaling_order").split():
        if word not in ("measurements", "manualScale"):
            raise scaling.need("scaling_order").error(f"'{word}' is neither 'measurements' nor 'manualScale'")
        methods.append(word)  # type: ignore[arg-type]
    return tuple(methods)


def _window(element: Element) -> tuple[float, float] | None:
    if not element.word("time_range"):
        return None
    first, last = element.numbers("time_range", 2, infinite=True)
    return (first, last) if last >= first else None


def _members(element: Element, tag: str) -> list[Element]:
    objects = element.find(tag, "objects")
    return [e for e in ([] if objects is None else objects.children) if e.flag("apply", True)]


def _measurements(scaling: Element) -> list[Measurement]:
    measurements = []
    for element in _members(scaling, "MeasurementSet"):
        refuse_other_children(element, {"apply", "MarkerPairSet", "BodyScaleSet"})
        pairs = []
        for pair in _members(element, "MarkerPairSet"):
            names = pair.word("markers").split()
            if len(names) != 2:
                raise pair.error(f"names {len(names)} markers, not two")
            pairs.append((names[0], names[1]))
        bodies = {}
        for body in _members(element, "BodyScaleSet"):
            bodies[body.name] = "".join(body.word("axes").split()).upper()
            if not bodies[body.name] or set(bodies[body.name]) - set("XYZ"):
                raise body.error(f"scales along '{body.word('axes')}'; axes are X, Y and Z")
        if pairs:
            measurements.append(Measurement(element.name, tuple(pairs), bodies))
    return measurements


def _manual(scaling: Element) -> dict[str, tuple[float, float, float]]:
    factors = {}
    for element in _members(scaling, "ScaleSet"):
        x, y, z = element.numbers("scales", 3)
        if min(x, y, z) <= 0.0:
            raise element.need("scales").error("factors must be positive")
        factors[element.word("segment")] = (x, y, z)
    return factors


def _placing(placer: Element) -> IkTasks:
    task_set = placer.find("IKTaskSet") or Element("IKTaskSet", {})
    return read_tasks(task_set, _window(placer))
