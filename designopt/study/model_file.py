"""Model files of plugins: YAML or XML checked against annotations, with file, line and column of mistakes.

A plugin declares the contents of its file like its settings, by dataclasses or TypedDicts with `Quantity`.
`read_model_file` returns the checked value or raises `StudyError`; raised in a model's ``check()`` or ``declares()`` it
is reported at the setting that names the file, like the mistakes of a study file.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from xml.parsers import expat

from designopt.files import InputFile
from designopt.study.language.checking.values import check, known_checker, members_of
from designopt.study.language.errors import Issue, StudyError, error_line
from designopt.study.language.files import NO_FILES
from designopt.study.language.findings import issues
from designopt.study.language.yaml import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_VALUES,
    Node,
    Source,
    Span,
    parse_bytes,
)

#: Maximum size of a model in XML, which is longer than YAML (bytes).
LARGEST_XML = 32 * 2**20


def read_model_file(file: InputFile, value_type: Any) -> Any:
    """The content of `file` as a `value_type`: a dataclass, a TypedDict, or a list or mapping of these.

    The suffixes ``.xml`` and ``.osim`` mean XML, others YAML by the rules of study files. In XML the names of
    attributes and of child elements are the keys, and the name of the root is ignored. Repeated elements are a list, as
    is a single one if the type is a list. An element without children is its text; for a list of numbers, the numbers
    in it, separated by spaces.

    Numbers may have units and are converted, ranges are checked, the message for an unknown key suggests the nearest
    one. Raises `StudyError` with all mistakes.
    """
    is_xml = file.name.lower().endswith((".xml", ".osim"))
    largest = LARGEST_XML if is_xml else MAX_BYTES
    if file.size > largest:
        raise StudyError([_issue(file.name, f"has {file.size} bytes; a model file has at most {largest}")])
    root = _with_lists(_parse_xml(file), value_type) if is_xml else parse_bytes(file.content, file.name)
    value, findings = check(known_checker(value_type), root.data(), NO_FILES)
    if findings:
        raise StudyError(issues(findings, root))
    return value


def _issue(name: str, message: str, line: int | None = None, column: int | None = None, text: str = "") -> Issue:
    end = None if column is None else column + 1
    return Issue(name, line, column, end, "", message, error_line(text))


# ----------------------------------------------------------------------------------------------------------- XML


class _Element:
    """An element during parsing: its position, children by name, and text."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.children: dict[str, list[Node]] = {}
        self.text: list[str] = []

    def node(self) -> Node:
        if not self.children:
            return _text_node("".join(self.text).strip(), self.span)
        entries = {
            name: (nodes[0].span, nodes[0] if len(nodes) == 1 else Node(self.span, items=nodes))
            for name, nodes in self.children.items()
        }
        return Node(self.span, entries=entries)


def _text_node(text: str, span: Span) -> Node:
    return Node(span, text or None)


def _parse_xml(file: InputFile) -> Node:
    """The elements as nodes with their positions. Documents with a document type are rejected, because entities may
    grow."""
    content = file.content
    lines = content.decode("utf-8-sig", errors="replace").splitlines()
    source = Source(file.name, tuple(lines))
    parser = expat.ParserCreate()
    parser.buffer_text = True
    open_elements: list[_Element] = []
    roots: list[Node] = []
    count = 0

    def fail(message: str, line: int, column: int) -> StudyError:
        text = lines[line] if line < len(lines) else ""
        return StudyError([_issue(file.name, message, line + 1, column + 1, text)])

    def position() -> tuple[int, int]:
        return parser.CurrentLineNumber - 1, parser.CurrentColumnNumber

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal count
        line, column = position()
        count += 1 + len(attributes)
        if len(open_elements) >= MAX_DEPTH or count > MAX_VALUES:
            raise fail(f"more than {MAX_DEPTH} levels or {MAX_VALUES} values", line, column)
        element = _Element(Span(source, line, column, line, column + len(name) + 1))
        for key, text in attributes.items():
            element.children[key] = [_text_node(text.strip(), _attribute(source, lines, line, column, key))]
        open_elements.append(element)

    def end(name: str) -> None:
        node = open_elements.pop().node()
        if open_elements:
            open_elements[-1].children.setdefault(name, []).append(node)
        else:
            roots.append(node)

    def text(data: str) -> None:
        open_elements[-1].text.append(data)

    def doctype(*_: Any) -> None:
        raise fail("a document type (DOCTYPE) is not allowed", *position())

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = text, doctype
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise fail(f"is not XML: {expat.ErrorString(error.code)}", error.lineno - 1, error.offset) from None
    return roots[0]


def _attribute(source: Source, lines: Sequence[str], line: int, column: int, key: str) -> Span:
    """Position of an attribute; the element if unknown."""
    last = min(line + 20, len(lines))
    for at in range(line, last):
        match = re.compile(rf"(?<![\w:.-]){re.escape(key)}\s*=").search(lines[at], column if at == line else 0)
        if match:
            return Span(source, at, match.start(), at, match.start() + len(key))
    return Span(source, line, column, line, column + 1)


def _with_lists(node: Node, annotation: Any) -> Node:
    """`node` with lists where the `annotation` requires them: of single elements, or of numbers in a text."""
    while typing.get_origin(annotation) in (Annotated, typing.Required, typing.NotRequired):
        annotation = typing.get_args(annotation)[0]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    list_type = next((a for a in arguments if typing.get_origin(a) in (list, tuple, Sequence)), None)
    if origin not in (list, tuple, Sequence) and list_type is not None:  # list[...] | None
        return _with_lists(node, list_type)
    if origin in (list, tuple, Sequence):
        inner = arguments[0] if arguments else Any
        if node.items is None and node.entries is None and isinstance(node.scalar, (str, type(None))):
            words = (node.scalar or "").split() if _is_number(inner) else [node.scalar] if node.scalar else []
            return Node(node.span, items=[_text_node(str(word), node.span) for word in words])
        items = [node] if node.items is None else node.items
        return Node(node.span, items=[_with_lists(item, inner) for item in items])
    if node.entries is None:
        truth = {"true": True, "false": False} if annotation is bool else {}
        return Node(node.span, truth.get(node.scalar, node.scalar), node.items)
    if origin in (dict, Mapping):
        inner = arguments[1]
        return Node(node.span, entries={k: (s, _with_lists(n, inner)) for k, (s, n) in node.entries.items()})
    annotation = next((a for a in arguments if dataclasses.is_dataclass(a) or typing.is_typeddict(a)), annotation)
    members = members_of(annotation)
    entries = {
        key: (span, _with_lists(inner_node, members[key].annotation) if key in members else inner_node)
        for key, (span, inner_node) in node.entries.items()
    }
    return Node(node.span, entries=entries)


def _is_number(annotation: Any) -> bool:
    while typing.get_origin(annotation) is Annotated:
        annotation = typing.get_args(annotation)[0]
    return annotation in (float, int)
