"""From the bytes of a model file to a `BodyModel`, or to everything that is wrong with it, by line and column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NoReturn

from designopt.study.language.checking.values import Checked, check, checker
from designopt.study.language.errors import StudyError
from designopt.study.language.findings import Finding, issues, nearest_or_all
from designopt.study.language.yaml import Node, parse_bytes
from designopt_wholebody.model.checks import mistakes
from designopt_wholebody.model.mirror import both_sides
from designopt_wholebody.model.schema import BodyModel

#: Gives the bytes of a model by its name, or raises `KeyError` with a sentence.
Library = Callable[[str], bytes]

#: Models that a model may be based on, one upon the other.
_MOST_BASES = 8

#: The segments, or points on them, that entries of a section speak of.
SEGMENT_KEYS = {"joints": ("proximal", "distal"), "angles": ("of", "relative_to"), "springs": ("first", "second")}


def read_model(content: bytes, name: str, library: Library) -> BodyModel:
    """The model in a file called `name`; `library` gives those that it may be based on.

    Raises `StudyError` with everything that is wrong, each with its line and column.
    """
    root = _with_base(parse_bytes(content, name), library, _MOST_BASES)
    model, findings = check(_file(), root.data(), _no_files)
    if not findings:
        findings = mistakes(model)
    if findings:
        raise StudyError(issues(findings, root))
    return both_sides(model)


@cache
def _file() -> Checked:
    return checker(BodyModel)


def _no_files(name: str) -> NoReturn:
    raise ValueError(f"a model file takes no other files; '{name}' cannot be read")


def _with_base(root: Node, library: Library, left: int) -> Node:
    """`root` laid over the model that it is based on, without the segments that it leaves out."""
    if root.entries is None or "based_on" not in root.entries:
        return root
    base_name = root.entries["based_on"][1].scalar
    if not isinstance(base_name, str):
        raise _file_error(root, ("based_on",), "the name of a model is needed")
    if not left:
        raise _file_error(root, ("based_on",), f"more than {_MOST_BASES} models are derived from each other")
    try:
        content = library(base_name)
    except KeyError as error:
        raise _file_error(root, ("based_on",), str(error.args[0])) from None
    base = _with_base(parse_bytes(content, f"{base_name}.yaml"), library, left - 1)
    changes = {key: entry for key, entry in root.entries.items() if key not in ("based_on", "only", "without")}
    return _without_segments(base, root).overlaid(Node(root.span, entries=changes))


def _without_segments(base: Node, root: Node) -> Node:
    """`base` without the segments that `root` leaves out, and without what speaks of them."""
    assert root.entries is not None
    segments = _names(base, "segments")
    kept_segments = set(segments)
    for key in ("only", "without"):
        if key not in root.entries:
            continue
        items = root.entries[key][1].items
        if items is None:
            raise _file_error(root, (key,), "a list of segments is needed")
        for i, item in enumerate(items):
            if item.scalar not in segments:
                message = f"the base has no segment '{item.scalar}'{nearest_or_all(str(item.scalar), segments)}"
                raise _file_error(root, (key, i), message)
        names = {str(item.scalar) for item in items}
        kept_segments = kept_segments & names if key == "only" else kept_segments - names
    gone = {*segments} - kept_segments
    gone |= {name.removesuffix("_R") + "_L" for name in gone if name.endswith("_R")}

    def speaks_of_gone(section: str, key: str, node: Node) -> bool:
        if section in ("segments", "contacts"):
            return key in gone
        keys = SEGMENT_KEYS[section]
        entries = node.entries or {}
        ends = [entries[key][1] for key in keys if key in entries]
        return any((end.items[0] if end.items else end).scalar in gone for end in ends)

    entries = dict(base.entries or {})
    for section in ("segments", "contacts", *SEGMENT_KEYS):
        if section in entries and entries[section][1].entries is not None:
            span, node = entries[section]
            left = {k: e for k, e in (node.entries or {}).items() if not speaks_of_gone(section, k, e[1])}
            entries[section] = (span, Node(node.span, entries=left, style=node.style))
    return Node(base.span, entries=entries, style=base.style)


def _names(base: Node, section: str) -> Mapping[str, Any]:
    entry = (base.entries or {}).get(section)
    return (entry[1].entries or {}) if entry else {}


def _file_error(root: Node, path: tuple[str | int, ...], message: str) -> StudyError:
    return StudyError(issues([Finding(path, message)], root))
