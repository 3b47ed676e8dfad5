"""Checks of a model file beyond the kinds of its values: existing names, shapes that fit a layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from designopt.study.language.findings import Finding, Path, nearest_or_all
from designopt_wholebody.model.mirror import left_of
from designopt_wholebody.model.schema import GROUND, NEEDS, BodyModel, Cross, Inertia, Joint, Segment

#: Points and vectors of a layout.
_SIZES = {"1p3v": (1, 3), "2p2v": (2, 2), "2p": (2, 0)}
_AXES = ("u", "v", "w")
_OPTIONAL = ("at", "axes", "axis", "compression", "spring", "points", "centre", "radii", "attitude")


def mistakes(model: BodyModel) -> list[Finding]:
    """Everything that is wrong with a model whose values are of the right kind, in the order of the file."""
    return list(_mistakes(model))


def _with_left(names: Iterable[str]) -> dict[str, None]:
    return dict.fromkeys(side for name in names for side in (name, left_of(name)))


def _mistakes(model: BodyModel) -> Iterator[Finding]:
    if model.sides == "both":
        for name in model.segments:
            if name.endswith("_L"):
                message = "the left side is mirrored; remove it, or say sides: right"
                yield Finding(("segments", name), message, key="")
    landmarks = _with_left([*model.landmarks, *model.derived])
    for name, parts in model.derived.items():
        yield from _unknown(("derived", name), parts, _with_left(model.landmarks), "measured landmark")
        if not parts:
            yield Finding(("derived", name), "at least one landmark is needed")
    for name, segment in model.segments.items():
        yield from (f.below(("segments", name)) for f in _segment(segment, landmarks))
    segments = _with_left(model.segments) if model.sides == "both" else dict.fromkeys(model.segments)
    if not segments:
        yield Finding(("segments",), "a model needs at least one segment")
    for name, joint in model.joints.items():
        yield from (f.below(("joints", name)) for f in _joint(joint, model, segments, landmarks))
    for name, spring in model.springs.items():
        for key, (segment_name, landmark) in (("first", spring.first), ("second", spring.second)):
            path = ("springs", name, key)
            yield from _unknown(path, (segment_name,), {**segments, GROUND: None}, "segment")
            yield from _unknown(path, (landmark,), landmarks, "landmark")
    if model.root is not None:
        yield from _unknown(("root", "segment"), (model.root.segment,), segments, "segment")
        yield from _unknown(("root", "point"), (model.root.point,), landmarks, "landmark")
    for name, outline in model.contacts.items():
        yield from _unknown(("contacts", name), (name,), segments, "segment", key="")
        yield from _unknown(("contacts", name), outline, landmarks, "landmark")
        if len(outline) < 3:
            yield Finding(("contacts", name), "an outline needs at least three landmarks")
    for name, angles in model.angles.items():
        for key, segment_name in (("of", angles.of), ("relative_to", angles.relative_to)):
            path = ("angles", name, key)
            yield from _unknown(path, (segment_name,), {**segments, GROUND: None}, "segment")
        if not 1 <= len(angles.names) <= 3:
            yield Finding(("angles", name, "names"), f"one to three names are needed, not {len(angles.names)}")
        for turn, sign in angles.names.items():
            if sign not in (1.0, -1.0):
                yield Finding(("angles", name, "names", turn), f"the sign must be 1 or -1, not {sign:g}")


def _unknown(
    path: Path, names: Iterable[str], known_names: dict[str, None], kind: str, key: str | None = None
) -> Iterator[Finding]:
    for name in names:
        if name not in known_names:
            yield Finding(path, f"there is no {kind} '{name}'{nearest_or_all(name, known_names)}", key=key)


def _segment(segment: Segment, landmarks: dict[str, None]) -> Iterator[Finding]:
    points, vectors = _SIZES[segment.layout]
    for key, entries, count in (("points", segment.points, points), ("vectors", segment.vectors, vectors)):
        if len(entries) != count:
            yield Finding((key,), f"layout {segment.layout} has {count} {key}, not {len(entries)}")
        if len(set(entries)) != len(entries):
            yield Finding((key,), "each may be named only once")
    yield from _unknown(("points",), segment.points, landmarks, "landmark")
    yield from _unknown(("landmarks",), segment.landmarks, landmarks, "landmark")
    if (segment.frame is None) != (segment.layout == "2p"):
        needs = "has no frame" if segment.frame else "needs a frame"
        yield Finding(("frame",) if segment.frame else (), f"a segment of layout {segment.layout} {needs}")
    if segment.frame is not None:
        yield from (f.below(("frame",)) for f in _frame(segment, landmarks))
    yield from (f.below(("inertia",)) for f in _inertia(segment.inertia, segment.layout == "2p", landmarks))


def _frame(segment: Segment, landmarks: dict[str, None]) -> Iterator[Finding]:
    frame = segment.frame
    assert frame is not None
    yield from _unknown(("origin",), (frame.origin,), landmarks, "landmark")
    needs: dict[str, set[str]] = {}
    for name in _AXES:
        axis = getattr(frame, name)
        needs[name] = set()
        if not isinstance(axis, Cross):
            yield from _unknown((name,), axis, landmarks, "landmark")
            continue
        for i, factor in enumerate(axis.cross):
            if not isinstance(factor, str):
                yield from _unknown((name, "cross", i), factor, landmarks, "landmark")
            elif factor not in _AXES:
                yield Finding(
                    (name, "cross", i), f"'{factor}' is not an axis: use u, v, w, or two landmarks in brackets"
                )
            else:
                needs[name].add(factor)
    axes: set[str] = set()
    while ready := {name for name in needs if name not in axes and needs[name] <= axes}:
        axes |= ready
    for name in sorted({*_AXES} - axes):
        yield Finding((name,), f"axis {name} depends on itself; make one axis from landmarks alone")


def _inertia(inertia: Inertia, rod: bool, landmarks: dict[str, None]) -> Iterator[Finding]:
    if (inertia.mass is None) == (inertia.mass_percent is None):
        yield Finding((), "either mass or mass_percent is needed")
    if inertia.mass_less and inertia.mass_percent is None:
        yield Finding(("mass_less",), "it is subtracted from mass_percent, which is missing")
    regression = inertia.length is not None or inertia.centre is not None or inertia.radii is not None
    absolute = bool(inertia.centre_at) or inertia.tensor is not None
    if rod:
        if regression or absolute:
            yield Finding((), "a rod is uniform: give its mass and no other inertia")
        return
    if regression == absolute:
        yield Finding((), "either length, centre and radii or centre_at and tensor are needed")
        return
    required_keys = ("length", "centre", "radii") if regression else ("centre_at", "tensor")
    for key in required_keys:
        if not getattr(inertia, key):
            yield Finding((), f"'{key}' is missing: it belongs to the others")
    yield from _unknown(("length",), inertia.length or (), landmarks, "landmark")
    yield from _unknown(("centre_at",), inertia.centre_at, landmarks, "landmark")


def _joint(joint: Joint, model: BodyModel, segments: dict[str, None], landmarks: dict[str, None]) -> Iterator[Finding]:
    yield from _unknown(("proximal",), (joint.proximal,), {**segments, GROUND: None}, "segment")
    yield from _unknown(("distal",), (joint.distal,), segments, "segment")
    if joint.proximal == joint.distal:
        yield Finding(("distal",), "a joint must connect two different segments")
    required_keys, possible = NEEDS[joint.type]
    default = Joint("spherical", "", "")
    for key in _OPTIONAL:
        is_stated = getattr(joint, key) != getattr(default, key)
        if key in required_keys and not is_stated:
            yield Finding((), f"a joint of type {joint.type} needs '{key}'")
        elif is_stated and key not in required_keys and key not in possible:
            yield Finding((key,), f"a joint of type {joint.type} has no '{key}'")
    if joint.at is not None:
        yield from _unknown(("at",), (joint.at,), landmarks, "landmark")
    if isinstance(joint.axis, tuple):
        yield from _unknown(("axis",), joint.axis, landmarks, "landmark")
    yield from _unknown(("points",), joint.points, landmarks, "landmark")
    for key, side, axes in (
        (
            "proximal",
            joint.proximal,
            joint.type in ("universal", "ellipsoid") or isinstance(joint.axis, str) or joint.compression is not None,
        ),
        ("distal", joint.distal, joint.type in ("universal", "revolute")),
    ):
        segment = model.segments.get(side)
        if axes and (side == GROUND or (segment is not None and segment.layout == "2p")):
            subject = "the ground has" if side == GROUND else "a rod has"
            yield Finding((key,), f"{subject} no axes of its own; a joint of type {joint.type} needs them here")
