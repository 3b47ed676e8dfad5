"""A study of the files in a folder: scenarios, model and set-ups, and what was assumed."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections import Counter
from pathlib import Path, PurePath
from typing import Any

import yaml
from designopt_mechanics.robot_files.xml import ModelError, parse
from designopt_muscle.markers.names import suggestion
from designopt_muscle.markers.tasks import read_ik_setup
from designopt_muscle.osim.markers import read_markers
from designopt_muscle.osim.model import OsimModel
from designopt_muscle.osim.poses import without_effect
from designopt_muscle.scaling.setup import read_scale_setup

from designopt.study.language.files import LARGEST_BESIDE
from designopt_laboratory.folder.contents import (
    FolderContents,
    contents_of,
    in_same_folder,
    partner,
    unreadable_statics,
    unused_files,
)
from designopt_laboratory.trial.feet import bodies_of_feet
from designopt_laboratory.trial.functional import determined_balls, join_recordings

#: Name of the data root in a study that is not in the folder of its files.
_ROOT = "laboratory"
#: Results up to the last step.
_STEPS, _ALL_STEPS = (
    {"angles": "Joint angles", "moments": "Joint angles and moments"},
    ("Joint angles, moments, muscle forces and joint loads"),
)
#: Markers that model and trial must share.
_LEAST_MARKERS = 3
_ARRAYS = (
    "time", "pose_status", "angles", "coordinate_names", "markers", "marker_errors", "measured_markers",
    "moment_names", "moments",
    "powers", "feet", "foot_forces", "foot_points", "muscles", "coordinates", "activations", "forces", "muscle_moments",
    "net_moments", "reserves", "shortfall", "strength_factor", "status", "signals", "fibre_lengths", "joints",
    "reactions", "reaction_moments", "cycle_sides", "cycle_times", "percent", "curve_kinds",
    "curve_names", "curve_units", "curves", "labels", "bodies", "body_masses", "scale_factors", "static_markers",
    "static_errors", "scaled_model", "skeleton", "paths", "doubts", "notes",
)  # fmt: skip


def study_of_folder(folder: Path, target: Path, name: str) -> tuple[str, list[str]]:
    """The text of a study of all trials below `folder`, for a file `target`, and sentences on what it assumes.

    Raises `ValueError` for a folder without a model or without trials, with what was found, and for a static pose that
    cannot be read.
    """
    contents = contents_of(folder)
    if not contents.models:
        raise ValueError(f"{folder} has no OpenSim model (.osim) that can be used{_reason(contents)}")
    if not contents.trials and not contents.motions:
        raise ValueError(
            f"{folder} has no trial: no C3D or TRC file besides static poses, and no table of coordinates of a model"
            f"{_reason(contents)}"
        )
    if unreadable := unreadable_statics(contents):
        raise ValueError(
            f"{folder}: the static pose cannot be read, and without it no subject is scaled: correct the file, or take"
            f" it out of the folder{''.join(f'{chr(10)}  {name}: {reason}' for name, reason in unreadable.items())}"
        )
    assumptions: list[str] = []
    prefix, root = _prefix(folder, target, contents)
    model = _model(contents, assumptions)
    settings: dict[str, Any] = {"use": "laboratory_trial", "model": prefix + model}
    settings |= _setups(contents, model, prefix, assumptions)
    if not contents.models[model].muscles:
        settings["until"] = "moments"
        assumptions.append(f"{model} has no muscles: the last step is the net moments")
    scenarios = _scenarios(contents, prefix, bool({"scaling", "scale_to_static"} & settings.keys()), assumptions)
    _functional(folder, contents, prefix, settings, scenarios, assumptions)
    _masses(folder, contents, settings, scenarios, assumptions)
    _generic_mass(contents.models[model], model, settings, scenarios, assumptions)
    _targets(folder, contents, prefix, scenarios, assumptions)
    scenarios = _with_loads(contents, prefix, scenarios, settings, assumptions)
    if settings.get("until") != "angles":
        _feet(contents, model, scenarios, assumptions)
    assumptions += _unmatched(folder, contents, model)
    design = {} if settings.get("until") == "angles" else _filter(folder, contents, assumptions)
    values = [*settings.values(), *(value for scenario in scenarios for value in scenario.values())]
    names = [name for value in values for name in (value if isinstance(value, list) else [value])]
    file_names = {str(name).removeprefix(prefix) for name in names}
    assumptions += unused_files(contents, file_names | set(contents.setups.get("filter", [])[: len(design)]))
    command = f"designopt run {shlex.quote(str(target))}" + (f" --data {shlex.quote(root)}" if root else "")
    return _text(name, settings, scenarios, design, (assumptions, command)), [*assumptions, command]


def _reason(contents: FolderContents) -> str:
    return "".join(f"\n  {file}: {reason}" for file, reason in contents.unused_files.items())


def _prefix(folder: Path, target: Path, contents: FolderContents) -> tuple[str, str]:
    """The prefix of the names of files in the study, and the option with which the study must be run: files outside of
    its folder, and large ones, are below a data root."""
    above = target.resolve().parent
    files = (*contents.models, *contents.recordings, *contents.reactions, *contents.motions)
    small = all((folder / name).stat().st_size <= LARGEST_BESIDE for name in files)
    if small and folder.resolve().is_relative_to(above):
        relative = folder.resolve().relative_to(above).as_posix()
        return ("" if relative == "." else f"{relative}/"), ""
    return f"{_ROOT}:", f"{_ROOT}={folder}"


def _unmatched(folder: Path, contents: FolderContents, model: str) -> list[str]:
    """A sentence on trials whose markers are not on the model; such a study is valid once it names a marker set."""
    if not contents.trials:
        return []
    source = (contents.setups.get("marker_set") or [model])[0]
    try:
        on_model = {marker.name for marker in read_markers((folder / source).read_bytes())}
    except ModelError:
        on_model = set()
    alone = [t for t in contents.trials if len(on_model & set(contents.recordings[t].marker_names)) < _LEAST_MARKERS]
    if not alone:
        return []
    labels = ", ".join(contents.recordings[alone[0]].marker_names[:12])
    near = suggestion(contents.recordings[alone[0]].marker_names, sorted(on_model))
    return [
        f"needed: {source} has no places for the markers of {', '.join(alone[:3])}{' ...' if len(alone) > 3 else ''}"
        f" ({labels} ...){near or '.'} Add OpenSim's file of a MarkerSet with them to the folder, and write the study"
        " anew, or assign the names by the setting rename_markers"
    ]


def _model(contents: FolderContents, assumptions: list[str]) -> str:
    names = list(contents.models)
    if len(names) == 1:
        return names[0]
    generic = [n for n in names if "generic" in n.lower()] if contents.setups.get("scaling") else []
    model_name = max(generic or names, key=lambda n: (len(contents.models[n].muscles), -n.count("/"), -len(n)))
    remaining_names = ", ".join(n for n in names if n != model_name)
    assumptions.append(f"model: {model_name}, the one with most muscles; the folder also has {remaining_names}")
    return model_name


def _setups(contents: FolderContents, model: str, prefix: str, assumptions: list[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for kind, meaning in (
        ("scaling", "scaling by the set-up"),
        ("marker_set", "markers on the bodies by"),
        ("tasks", "weights of markers by"),
    ):
        names = contents.setups.get(kind)
        if names and kind == "scaling" and not contents.statics:
            assumptions.append(
                f"no static pose was found: {names[0]} scales nothing, and the model keeps its dimensions"
            )
        elif names:
            settings[kind] = prefix + names[0]
            others_of_kind = f" (not {', '.join(names[1:])})" if len(names) > 1 else ""
            assumptions.append(f"{meaning} {names[0]}{others_of_kind}")
    if "scaling" not in settings and contents.statics:
        if "scaled" in model.lower():
            assumptions.append(f"{model} is scaled already, as its name says")
        else:
            settings["scale_to_static"] = True
            assumptions.append(f"no ScaleTool set-up was found: {model} is scaled to all markers of the static pose")
    return settings


def _scenarios(contents: FolderContents, prefix: str, scaled: bool, assumptions: list[str]) -> list[dict[str, Any]]:
    trials = contents.trials or contents.motions
    if contents.trials and contents.motions:
        assumptions.append(f"coordinates come from markers, not from {', '.join(contents.motions)}")
    stems = Counter(PurePath(name).stem for name in trials)
    scenarios = []
    for trial in trials:
        stem, folder = PurePath(trial).stem, trial.rpartition("/")[0]
        scenario: dict[str, Any] = {"name": stem if stems[stem] == 1 else f"{folder.replace('/', '_')}_{stem}"}
        scenario["recording" if contents.trials else "motion"] = prefix + trial
        recording = contents.recordings.get(trial)
        if scaled:
            static = partner(trial, contents.statics, [trial]) or contents.statics[0]
            scenario["static"] = prefix + static
            assumptions.append(f"{trial}: static pose {static}")
        if recording is None or not recording.plates:
            scenario |= _reactions(trial, contents, list(trials), prefix, assumptions)
        if recording is not None and (mass := recording.parameters.get("Bodymass", 0.0)) > 0.0:
            scenario["mass"] = f"{mass:g} kg"
            assumptions.append(f"{trial}: mass of {mass:g} kg, as the recording says")
        if folder:
            scenario["subject"] = folder.split("/")[-1]
        scenarios.append(scenario)
    return scenarios


def _functional(
    folder: Path,
    contents: FolderContents,
    prefix: str,
    settings: dict[str, Any],
    scenarios: list[dict[str, Any]],
    assumptions: list[str],
) -> None:
    """The ball joints that the movement of each subject gives, where all trials have one and the model is scaled."""
    movements = [tuple(in_same_folder(trial, contents.movements)) for trial in contents.trials]
    scaled = [scenario for scenario in scenarios if "static" in scenario]
    if not scaled or len(scaled) < len(scenarios) or not all(movements):
        return
    model = contents.models[settings["model"].removeprefix(prefix)]
    source = settings.get("marker_set", settings["model"]).removeprefix(prefix)
    try:
        markers = read_markers((folder / source).read_bytes())
    except ModelError:
        return
    statics = [scenario["static"].removeprefix(prefix) for scenario in scenarios]
    joints = [
        determined_balls(
            model,
            markers,
            (contents.recordings[static], join_recordings([contents.recordings[name] for name in files])),
        )
        for static, files in set(zip(statics, movements, strict=True))
    ]
    common = [joint.name for joint in model.joints if all(joint.name in names for names in joints)]
    if not common:
        return
    settings["functional_joints"] = {name: {} for name in common}
    for scenario, files in zip(scenarios, movements, strict=True):
        scenario["functional"] = [f"{prefix}{name}" for name in files]
        assumptions.append(f"{scenario['name']}: centres of {', '.join(common)} by the movement of {', '.join(files)}")


def _masses(
    folder: Path,
    contents: FolderContents,
    settings: dict[str, Any],
    scenarios: list[dict[str, Any]],
    assumptions: list[str],
) -> None:
    """The mass in the scaling set-up of each subject, where the study does not take it from its one set-up."""
    setups = contents.setups.get("scaling", [])
    trials = contents.trials or contents.motions
    for trial, scenario in zip(trials, scenarios, strict=True):
        setup = partner(trial, setups, [trial])
        if setup is None or "mass" in scenario or (setup == setups[0] and "scaling" in settings):
            continue
        try:
            mass = read_scale_setup((folder / setup).read_bytes()).mass
        except ModelError:
            continue
        if mass is not None:
            scenario["mass"] = f"{mass:g} kg"
            assumptions.append(f"{trial}: mass of {mass:g} kg, as {setup} says")


def _generic_mass(
    model: OsimModel, name: str, settings: dict[str, Any], scenarios: list[dict[str, Any]], assumptions: list[str]
) -> None:
    """A sentence on trials for which no file has the mass of the subject."""
    generic = [s["name"] for s in scenarios if not {"mass", "subject_model"} & s.keys()]
    if generic and "scaling" not in settings:
        trials = f"{', '.join(generic[:3])}{f' and {len(generic) - 3} more' if len(generic) > 3 else ''}"
        mass = sum(body.mass for body in model.bodies)
        assumptions.append(
            f"{trials}: the mass of {name}, {mass:.4g} kg; state the subject's as mass: 70 kg in the trial"
        )


def _reactions(
    trial: str, contents: FolderContents, trials: list[str], prefix: str, assumptions: list[str]
) -> dict[str, str]:
    """Ground reactions of a trial, with their assignment to bodies."""
    assignments = contents.setups.get("external_loads", [])
    loads = partner(trial, assignments, trials)
    if loads is not None:
        tables = [t for t in contents.reactions if t.split("/")[-1] == contents.loads_tables[loads]]
        if tables:
            assumptions.append(f"{trial}: ground reactions {tables[0]}, assigned to bodies by {loads}")
            return {"reactions": prefix + tables[0], "external_loads": prefix + loads}
    table = partner(trial, contents.reactions, trials)
    if table is None:
        return {}
    if loads is not None:
        missing = contents.loads_tables[loads]
        assumptions.append(f"{trial}: ground reactions {table}, assigned to bodies by {loads}, which names {missing}")
        return {"reactions": prefix + table, "external_loads": prefix + loads}
    assumptions.append(f"{trial}: ground reactions {table}, assigned to the feet by position")
    return {"reactions": prefix + table}


def _with_loads(
    contents: FolderContents,
    prefix: str,
    scenarios: list[dict[str, Any]],
    settings: dict[str, Any],
    assumptions: list[str],
) -> list[dict[str, Any]]:
    """The scenarios with forces of the ground; all of them, up to the angles, if none has any."""

    def loaded(scenario: dict[str, Any]) -> bool:
        recording = contents.recordings.get(str(scenario.get("recording", "")).removeprefix(prefix))
        return "reactions" in scenario or (recording is not None and bool(recording.plates))

    with_loads = [scenario for scenario in scenarios if loaded(scenario)]
    if not with_loads:
        settings["until"] = "angles"
        assumptions.append(
            "no trial has force plates or a table of ground reactions: moments, muscle forces and joint loads cannot be"
            " computed, and the last step is the joint angles (until: angles)"
        )
        return scenarios
    for scenario in scenarios:
        if scenario not in with_loads:
            file = str(scenario.get("recording") or scenario.get("motion")).removeprefix(prefix)
            contents.unused_files[file] = (
                "has neither force plates nor a table of ground reactions, as other trials have; its angles need a"
                " study with until: angles"
            )
    return with_loads


def _filter(folder: Path, contents: FolderContents, assumptions: list[str]) -> dict[str, Any]:
    """Inputs of the design by OpenSim's set-up of inverse dynamics: the cut-off of the coordinates."""
    for name in contents.setups.get("filter", [])[:1]:
        tool = parse((folder / name).read_bytes()).need("InverseDynamicsTool")
        cutoff = tool.number("lowpass_cutoff_frequency_for_coordinates", -1.0)
        without = ", ".join(without_effect(tool, {"lowpass_cutoff_frequency_for_coordinates"}))
        if cutoff > 0.0:
            assumptions.append(f"filter of the coordinates at {cutoff:g} Hz by {name}; without effect here: {without}")
            return {"cutoff": f"{cutoff:g} Hz"}
        contents.unused_files[name] = "has no cut-off of the coordinates; 6 Hz is used"
    return {}


def _targets(
    folder: Path, contents: FolderContents, prefix: str, scenarios: list[dict[str, Any]], assumptions: list[str]
) -> None:
    """Tables of coordinates for trials whose tasks follow one."""
    names = contents.setups.get("tasks")
    if not names or not contents.trials or not read_ik_setup((folder / names[0]).read_bytes()).tasks.from_table:
        return
    for trial, scenario in zip(contents.trials, scenarios, strict=True):
        table = partner(trial, contents.motions, contents.trials)
        if table is None:
            assumptions.append(f"needed: tasks of {names[0]} follow a table of coordinates; {trial} has none")
        else:
            scenario["targets"] = prefix + table
            assumptions.append(f"{trial}: tasks of {names[0]} follow the coordinates in {table}")


def _feet(contents: FolderContents, model: str, scenarios: list[dict[str, Any]], assumptions: list[str]) -> None:
    """The bodies of the feet, where plates are assigned by position."""
    if all("external_loads" in scenario for scenario in scenarios):
        return
    try:
        feet = bodies_of_feet(contents.models[model])
    except ValueError as error:
        assumptions.append(str(error))
    else:
        assumptions.append(f"the bodies on the plates are {feet['right']} and {feet['left']}")


def _text(
    name: str,
    settings: dict[str, Any],
    scenarios: list[dict[str, Any]],
    design: dict[str, Any],
    head: tuple[list[str], str],
) -> str:
    """The study file; its `head` has what was assumed, and the command that runs it."""
    assumptions, run = head
    comments = "\n".join(f"#   {line}" for sentence in assumptions for line in sentence.splitlines())
    muscles = "until" not in settings
    plots = ["laboratory_curves", "laboratory_differences", "laboratory_markers", "laboratory_subject", "overview"]
    scene: dict[str, Any] = {"use": "scene", "title": "The trial in motion", "lines": ["skeleton"]}
    if muscles:
        plots.insert(2, "muscle_sharing")
        scene |= {"wires": "paths", "colour": "activations", "lowest": 0, "highest": 1}
    body = {
        "model": {**settings, "cycles": "auto"},
        "scenarios": scenarios,
        "solver": {"use": "evaluate", **({"designs": [{"name": "usual", **design}]} if design else {})},
        "report": {"plots": [*plots, scene, "failures"]},
    }
    parts = [
        yaml.safe_dump({key: value}, sort_keys=False, width=110, allow_unicode=True) for key, value in body.items()
    ]
    arrays = textwrap.fill(", ".join(_ARRAYS), 110, initial_indent="    ", subsequent_indent="    ")
    parts.insert(3, f"execution:\n  arrays: [\n{arrays}\n  ]\n")
    title = f"study: {name}\ntitle: {json.dumps(f'Trials of {name}')}\n"
    return (
        f"# {_STEPS.get(settings.get('until', ''), _ALL_STEPS)} of {len(scenarios)} trial"
        f"{'s' if len(scenarios) > 1 else ''}.\n#\n#   {run}\n#\n# Assumed:\n{comments}\n\n"
        + "\n".join([title, *parts])
    )
