"""From a model file to a mechanism: a tree with loops, the elements attached to its frames, and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any, TypeVar

import numpy as np

from designopt.study.language.errors import StudyError
from designopt.study.language.findings import Finding, issues
from designopt.study.language.yaml import Node, parse_bytes
from designopt_mechanics.checks import check, check_wires
from designopt_mechanics.functions.closure import ClosureError
from designopt_mechanics.mechanism.loops import CannotClose, LoopSolver
from designopt_mechanics.mechanism.mechanism import Coincidence, Mechanism
from designopt_mechanics.mechanism.paths import no_path
from designopt_mechanics.model_file.dyads import RESULTS, FileDyad, file_dyad
from designopt_mechanics.model_file.elements import (
    clearance,
    component,
    contact,
    line_angle,
    load,
    meet,
    point,
    spring,
    surface,
    wire,
)
from designopt_mechanics.model_file.frames import frame
from designopt_mechanics.model_file.functions import (
    coordinate,
    followed_unknowns,
    function,
    is_followed,
    loop,
    relations,
)
from designopt_mechanics.model_file.laws import law
from designopt_mechanics.model_file.nodes import FileMistake, Findings, LocatedNode, named
from designopt_mechanics.model_file.parameters import FileParameters, path_of
from designopt_mechanics.model_file.scope import FileScope
from designopt_mechanics.tree import GROUND, Coordinate, Frame, Tree, TreeError

T = TypeVar("T")

_SECTIONS = ("gravity", "functions", "loops", "wires", "springs", "contacts", "title", "source", "parameters", "meet",
             "surfaces", "independent", "branches", "dyads", "loads", "drives", "points", "clearances", "angles",
             "couplers")  # fmt: skip
#: Number of frames in a file beyond which reading takes too long to be waited for.
_MOST_FRAMES = 500


def bundled(name: str) -> Mechanism:
    """The bundled model file `name` (without ending)."""
    return read(files("designopt_mechanics.model_file").joinpath("models", f"{name}.yaml").read_bytes(), f"{name}.yaml")


def read(content: bytes, name: str, by_path: Mapping[str, str] | None = None) -> Mechanism:
    """The mechanism in the bytes of a YAML file called `name`, with symbols for its parameters.

    `by_path` maps names of further parameters to the numbers of the file that they replace, as paths:
    ``frames.rod.place.0``. Raises `StudyError` with everything that is wrong, each with line and column, and
    `ValueError` for a path to no number that can vary.
    """
    root = parse_bytes(content, name)
    paths = {path_of(text): parameter for parameter, text in (by_path or {}).items()}
    parameters = FileParameters(paths)
    mechanism = _of_numbers(root, parameters)
    if unknown_paths := [text for parameter, text in (by_path or {}).items() if parameter not in parameters.parameters]:
        raise ValueError(no_path(unknown_paths[0], parameters.paths))
    if not parameters.parameters:
        return mechanism
    symbolic = parameters.symbols()
    result = _mechanism(LocatedNode(root, variable=symbolic), Findings(), symbolic)
    assert result is not None
    return result


def read_numbers(content: bytes, name: str) -> Mechanism:
    """The mechanism as `read`, with numbers in place of its parameters."""
    return replace(_of_numbers(parse_bytes(content, name), FileParameters()), parameters=())


def _of_numbers(root: Node, parameters: FileParameters) -> Mechanism:
    findings = Findings()
    mechanism = None
    with findings.item():
        mechanism = _mechanism(LocatedNode(root, variable=parameters), findings, parameters)
    if findings.mistakes or mechanism is None:
        raise StudyError(issues(findings.mistakes, root))
    return mechanism


def _mechanism(at: LocatedNode, findings: Findings, parameters: FileParameters) -> Mechanism | None:
    entries = at.mapping(("coordinates", "frames"), _SECTIONS)

    def each(section: str, make: Callable[[str, LocatedNode], T]) -> dict[str, T]:
        section_entries = named(entries[section]) if section in entries else {}
        return findings.make_each(section_entries, make)

    if "parameters" in entries and not parameters.symbolic:
        parameters.read(entries["parameters"])
    coordinates = each("coordinates", coordinate)
    if findings.mistakes:  # what follows from a mistake is none
        return None
    laws = each("coordinates", lambda name, entry: law(entry.mapping(), coordinates[name].unit))
    scope = _scope(entries, coordinates, parameters, findings)
    if scope is None or findings.mistakes:
        return None
    dyads = _functions(entries, scope, findings, each)
    if findings.mistakes:
        return None
    equations = [
        relation
        for name, entry in (named(entries["loops"]) if "loops" in entries else {}).items()
        if is_followed(entry)
        for relation in relations(name, entry, scope)
    ]
    frame_entries = named(entries["frames"])
    if len(frame_entries) > _MOST_FRAMES:
        raise entries["frames"].wrong(f"a model file has at most {_MOST_FRAMES} frames")
    frames = each("frames", lambda name, entry: frame(name, entry, scope))
    gravity: Any = (0.0, 0.0, 0.0)
    with findings.item():
        gravity = _gravity(at, entries, frames)
    frame_names = {GROUND, *frame_entries}
    surfaces = each("surfaces", lambda name, entry: surface(name, entry, frame_names))
    if "surfaces" in entries and len(surfaces) < len(entries["surfaces"].mapping()):
        return None
    wires = each("wires", lambda name, entry: wire(name, entry, frame_names, surfaces))
    springs = each("springs", lambda name, entry: spring(name, entry, frame_names, surfaces))
    contacts = each("contacts", lambda name, entry: contact(name, entry, frame_names))
    meets: tuple[Coincidence, ...] = ()
    if "meet" in entries:
        pairs = {"meet": entries["meet"]} if entries["meet"].node.items is not None else named(entries["meet"])
        meets = tuple(findings.make_each(pairs, lambda name, entry: meet(name, entry, frame_names)).values())
    moving = replace(scope, function_names=(*scope.function_names, "time", *(f"{n}_speed" for n in scope.coordinates)))
    loads = each("loads", lambda name, entry: load(name, entry, frame_names, moving))
    drives = each("drives", lambda name, entry: _drive(name, entry, moving))
    points = each("points", lambda _, entry: point(entry.mapping(("on", "at"), ()), frame_names))
    clearances = each("clearances", lambda _, entry: clearance(entry, frame_names, surfaces))
    angles = each("angles", lambda _, entry: line_angle(entry, frame_names))
    branches = each("branches", lambda _, entry: _branch(entry, scope.coordinates))
    independent: tuple[str, ...] = ()
    if "independent" in entries:
        independent = tuple(item.word(tuple(scope.coordinates)) for item in entries["independent"].items())
    if findings.mistakes:
        return None
    mechanism_parts: dict[str, Any] = {
        "gravity": gravity, "wires": tuple(wires.values()), "springs": tuple(springs.values()),
        "contacts": tuple(contacts.values()), "meets": meets, "relations": tuple(equations), "independent": independent,
        "branches": branches, "parameters": tuple(parameters.parameters.values()), "loads": tuple(loads.values()),
        "drives": drives, "laws": {n: value for n, value in laws.items() if value is not None},
        "points": points, "clearances": clearances, "angles": angles,
        "reaches": {name: dyad.gap for name, dyad in dyads.items()},
        "couplers": entries["couplers"].flag() if "couplers" in entries else False,
        "unused_parameters": tuple(name for name in parameters.parameters if name not in parameters.used_names),
        "title": entries["title"].word() if "title" in entries else "",
    }  # fmt: skip
    tree_parts = (tuple(scope.coordinates.values()), tuple(frames.values()))
    if parameters.symbolic:
        return Mechanism(Tree(*tree_parts), **mechanism_parts)
    return _checked_mechanism(tree_parts, mechanism_parts, frame_entries)


def _scope(
    entries: Mapping[str, LocatedNode],
    coordinates: Mapping[str, Coordinate],
    parameters: FileParameters,
    findings: Findings,
) -> FileScope | None:
    """The names of the file: coordinates with the unknowns of followed loops, parameters, functions to come."""
    names = dict(coordinates)
    function_names = [*(named(entries["functions"]) if "functions" in entries else ())]
    for entry in (named(entries["loops"]) if "loops" in entries else {}).values():
        with findings.item():
            if is_followed(entry):
                names |= followed_unknowns(entry)
            else:
                function_names += named(entry.mapping()["unknowns"]) if "unknowns" in entry.mapping() else []
    function_names += [
        f"{name}_{r}" for name in (named(entries["dyads"]) if "dyads" in entries else ()) for r in RESULTS
    ]
    every = [*names, *parameters.parameters, *function_names]
    for section in ("parameters", "functions"):
        for name, entry in (entries[section].mapping() if section in entries else {}).items():
            if every.count(name) > 1:
                raise entry.wrong(f"the name '{name}' is used twice: for a coordinate, parameter or function")
            if name == "time":
                raise entry.wrong("'time' is the time in s; choose another name")
    return FileScope(names, parameters.scope(), {}, tuple(function_names), parameters.used_names)


def _functions(
    entries: Mapping[str, LocatedNode], scope: FileScope, findings: Findings, each: Callable[..., dict[str, Any]]
) -> dict[str, FileDyad]:
    """Fill the functions of the scope; returns the dyads."""
    scope.functions.update(each("functions", lambda _, entry: function(entry, scope)))
    if findings.mistakes:
        return {}
    _check_order(entries, scope)
    loops = {n: e for n, e in (named(entries["loops"]) if "loops" in entries else {}).items() if not is_followed(e)}
    for results in findings.make_each(loops, lambda _, entry: loop(entry, scope)).values():
        scope.functions.update(results)
    dyads: dict[str, FileDyad] = each("dyads", lambda _, entry: file_dyad(entry, scope))
    for name, dyad in dyads.items():
        scope.functions.update(dyad.functions(name))
    return dyads


def _check_order(entries: Mapping[str, LocatedNode], scope: FileScope) -> None:
    """Raises `FileMistake` for functions that use each other in a circle."""
    uses = {name: getattr(f, "names", ()) for name, f in scope.functions.items()}

    def reaches(name: str, target: str, chain: set[str]) -> bool:
        return any(
            n == target or (n not in chain and reaches(n, target, {*chain, n})) for n in uses.get(name, ()) if n in uses
        )

    for name in uses:
        if reaches(name, name, set()):
            raise entries["functions"].mapping()[name].wrong(f"'{name}' uses itself")


def _gravity(at: LocatedNode, entries: Mapping[str, LocatedNode], frames: Mapping[str, Frame]) -> Any:
    if "gravity" in entries:
        return entries["gravity"].quantities("m/s^2")
    if any(f.body is not None and (not isinstance(f.body.mass, float) or f.body.mass > 0.0) for f in frames.values()):
        raise at.wrong(
            "bodies with mass need a 'gravity': write gravity: [0, -9.81, 0] (m/s^2, in the axes of the ground), "
            "or gravity: [0, 0, 0] for a motion without weight"
        )
    return (0.0, 0.0, 0.0)


def _drive(name: str, at: LocatedNode, scope: FileScope) -> Any:
    if name not in scope.coordinates:
        raise at.wrong(f"no coordinate '{name}'; known: {', '.join(scope.coordinates)}")
    return component(at, scope.coordinates[name].effort_unit, scope)


def _branch(at: LocatedNode, coordinates: Mapping[str, Coordinate]) -> dict[str, float]:
    values = {}
    for name, entry in at.mapping().items():
        if name not in coordinates:
            raise entry.wrong(f"no coordinate '{name}'; known: {', '.join(coordinates)}")
        values[name] = entry.number(coordinates[name].unit)
    return values


def _checked_mechanism(
    tree_parts: tuple[tuple[Coordinate, ...], tuple[Frame, ...]],
    parts: Mapping[str, Any],
    frame_entries: Mapping[str, LocatedNode],
) -> Mechanism:
    """The mechanism of numbers, tried at its reference posture. Raises `FileMistake`."""
    z = None
    try:
        tree = Tree(*tree_parts)
        mechanism = Mechanism(tree, **parts)
        if not mechanism.meets and not mechanism.relations:
            check(tree)
        else:
            loops = LoopSolver(mechanism)
            p = mechanism.column()
            z = loops.start(p)
            unit = np.eye(len(loops.independent))
            tangent = np.stack([loops.rates(z[None], row[None], p)[0] for row in unit], axis=1) if len(unit) else None
            for branch in mechanism.branches:
                loops.start(p, branch)
            check(tree, z, tangent)
    except TreeError as error:
        path = _path(error, frame_entries)
        message = error.message if path[-1] == error.field else f"{error.field}: {error.message}"
        raise FileMistake(Finding(path, message)) from None
    except (CannotClose, ClosureError) as error:
        section = "meet" if parts["meets"] else "loops"
        raise FileMistake(Finding((section,), str(error))) from None
    for section, paths in (("wires", parts["wires"]), ("springs", [s.wire for s in parts["springs"]])):
        try:
            check_wires(tree, paths, z)
        except TreeError as error:
            raise FileMistake(Finding((section, error.name, error.field), error.message)) from None
    return mechanism


def _path(error: TreeError, frame_entries: Mapping[str, LocatedNode]) -> tuple[str, ...]:
    """Where in the file an error of the tree is."""
    if error.field in ("meet", "independent"):
        return (error.field,)
    section = "frames" if error.name in frame_entries else "coordinates"
    path: tuple[str, ...] = (section, error.name)
    inner = frame_entries.get(error.name)
    if inner is not None and error.field in (inner.node.entries or {}):
        path = (*path, error.field)
    return path
