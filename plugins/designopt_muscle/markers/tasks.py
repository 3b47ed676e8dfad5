"""What inverse kinematics follows: weights of markers and coordinates, from OpenSim's set-up files or from Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from designopt_mechanics.robot_files.xml import Element, parse
from designopt_recordings.table import TimeTable

from designopt_muscle.osim.poses import without_effect

_KINDS = {"IKMarkerTask", "IKCoordinateTask"}
_TASK_TAGS = {"apply", "weight", "value_type", "value"}


@dataclass(frozen=True, eq=False)
class IkTasks:
    """Weights of `markers` and `coordinates` in the sum that is minimised.

    Without any marker all that model and recording share count with weight 1, otherwise only those that are named. A
    weighted coordinate is drawn to its number in `targets` (rad, m), to the table `references` if it is in
    `from_table`, else to its default. `window` (s) selects frames; `large` (m) is the error of a marker that marks a
    frame.
    """

    markers: Mapping[str, float] = field(default_factory=dict)
    coordinates: Mapping[str, float] = field(default_factory=dict)
    targets: Mapping[str, float] = field(default_factory=dict)
    from_table: frozenset[str] = frozenset()
    references: TimeTable | None = None
    window: tuple[float, float] | None = None
    large: float = 0.1


@dataclass(frozen=True, eq=False)
class IkSetup:
    """An inverse kinematics of OpenSim: its `tasks` and the name of the recording that its time is for, '' for any;
    elements of the file beside these are `without_effect`, other names of files too: the caller states the files."""

    tasks: IkTasks
    marker_file: str = ""
    without_effect: tuple[str, ...] = ()


def read_ik_setup(content: bytes) -> IkSetup:
    """The set-up in OpenSim's file of an ``InverseKinematicsTool`` or of an ``IKTaskSet``.

    Raises `ModelError` with line and column for other files, unknown tasks and weights that are negative.
    """
    root = parse(content)
    tool = root.find("InverseKinematicsTool")
    holder = tool or root
    task_set = root if root.tag == "IKTaskSet" else holder.find("IKTaskSet")
    if task_set is None:
        raise holder.error("contains no <IKTaskSet>, the weights of markers and coordinates")
    window = holder.numbers("time_range", 2, infinite=True) if holder.word("time_range") else None
    return IkSetup(
        read_tasks(task_set, None if window is None else (window[0], window[1])),
        _file_name(holder, "marker_file"),
        tuple(without_effect(tool, {"IKTaskSet", "time_range", "" if window is None else "marker_file"})),
    )


def read_tasks(task_set: Element, window: tuple[float, float] | None = None) -> IkTasks:
    """The tasks in an element ``IKTaskSet``; tasks that are switched off are left out."""
    markers: dict[str, float] = {}
    coordinates: dict[str, float] = {}
    targets: dict[str, float] = {}
    from_table: set[str] = set()
    objects = task_set.find("objects")
    for task in [] if objects is None else objects.children:
        if task.tag not in _KINDS:
            raise task.error("is not a supported task: IKMarkerTask and IKCoordinateTask are read")
        for child in task.children:
            if child.tag not in _TASK_TAGS:
                raise child.error(f"is not supported within <{task.tag}>")
        if not task.flag("apply", True):
            continue
        weights = markers if task.tag == "IKMarkerTask" else coordinates
        weights[task.name] = _weight(task)
        if task.tag == "IKCoordinateTask":
            match task.word("value_type", "default_value"):
                case "manual_value":
                    targets[task.name] = task.number("value", 0.0)
                case "from_file":
                    from_table.add(task.name)
                case "default_value":
                    pass
                case kind:
                    raise task.need("value_type").error(
                        f"'{kind}' is not one of default_value, manual_value, from_file"
                    )
    return IkTasks(markers, coordinates, targets, frozenset(from_table), None, window)


def _weight(task: Element) -> float:
    weight = task.number("weight", 1.0)
    if weight < 0.0:
        raise task.need("weight").error(f"{weight:g} is negative")
    return weight


def _file_name(element: Element, tag: str) -> str:
    """The file that a child names; '' for OpenSim's word for none."""
    name = element.word(tag)
    return "" if name == "Unassigned" else name
