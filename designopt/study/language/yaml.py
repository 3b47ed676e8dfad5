"""Study files as YAML 1.2 (core schema) with the position of every key and value.

PyYAML's parser only provides *events*: its composer overflows the stack on deep nesting, its constructors read YAML 1.1
(`no` as false, `1:30` as ninety), and it keeps no positions. The nodes are built here, without recursion and within
limits, from one document without tags, merge keys or duplicate keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml as pyyaml
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

from designopt.study.language.errors import Issue, StudyError, abbreviate, error_line


class _PureParser(Reader, Scanner, Parser):
    """The same events in pure Python, for a PyYAML without libyaml: slower, otherwise equal."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)


#: Limits of a study file.
MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64
MAX_VALUES = 200_000

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_INT = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{sign + word: float(sign + "inf") for sign in ("", "-", "+") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}


@dataclass(frozen=True)
class Source:
    """The source of a text: a file's name and its lines, or a ``--set`` argument (`lines` empty)."""

    name: str
    lines: tuple[str, ...] = ()


class Span(NamedTuple):
    """A position; lines and columns from 0, the end exclusive."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def empty(self) -> bool:
        return (self.line, self.column) == (self.end_line, self.end_column)


@dataclass(slots=True)
class Node:
    """A value with its position: a scalar, a list (`items`) or a mapping (`entries`, with the span of each key).

    `size` counts its values, itself included, and `height` its levels, aliases expanded. `style` is the scalar's
    quoting character, and "{" or "[" for a collection in flow style.
    """

    span: Span
    scalar: Any = None
    items: list[Node] | None = None
    entries: dict[str, tuple[Span, Node]] | None = None
    style: str = ""
    size: int = 1
    height: int = 0

    def data(self) -> Any:
        """The plain Python value: dict, list, str, int, float, bool or None."""
        if self.entries is not None:
            return {key: node.data() for key, (_, node) in self.entries.items()}
        if self.items is not None:
            return [node.data() for node in self.items]
        return self.scalar

    def overlaid(self, above: Node) -> Node:
        """Both mappings merged: common entries are merged if both are mappings, otherwise `above` takes precedence."""
        if self.entries is None or above.entries is None:
            return above
        entries = dict(self.entries)
        for key, (span, node) in above.entries.items():
            entries[key] = (span, entries[key][1].overlaid(node) if key in entries else node)
        return Node(above.span, entries=entries, style=above.style)


def split_lines(text: str) -> tuple[str, ...]:
    """Lines as the parser counts them."""
    return tuple(_BREAK.split(text))


def _event_source(text: str) -> Any:
    try:
        from yaml.cyaml import CParser  # type: ignore[attr-defined]
    except ImportError:
        return _PureParser(text)
    return CParser(text)


def parse_bytes(content: bytes, name: str) -> Node:
    """`parse` for the bytes of a file: UTF-8 with an optional byte order mark."""
    if len(content) > MAX_BYTES:
        raise _error(Source(name), 0, 0, f"a study file has at most 4 MiB, this one {len(content) / 2**20:.1f}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", errors="replace")
        lines = split_lines(before)
        source = Source(name, tuple(split_lines(content.decode("utf-8-sig", errors="replace"))))
        message = f"a study file is UTF-8 text; byte 0x{content[error.start]:02x} is not"
        raise _error(source, len(lines) - 1, len(lines[-1]), message) from None
    return parse(text, name)


def parse(text: str, name: str) -> Node:
    """The one document in `text`. `name` is its name in messages.

    Raises `StudyError` with the position of the first violation of syntax or limits.
    """
    if len(text.encode("utf-8", errors="replace")) > MAX_BYTES:
        raise _error(Source(name), 0, 0, "a study file has at most 4 MiB")
    text = text.removeprefix("\ufeff")
    source = Source(name, split_lines(text))
    bad = _UNPRINTABLE.search(text)
    if bad:
        lines = split_lines(text[: bad.start()])
        message = f"character U+{ord(bad.group()):04X} is not allowed in a study file"
        raise _error(source, len(lines) - 1, len(lines[-1]), message)
    try:
        parser = _event_source(text)
        return _Builder(source).document(_events(parser))
    except pyyaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = _position_within_text(source, *((mark.line, mark.column) if mark else (0, 0)))
        tab = source.lines[line][column : column + 1] == "\t" or "tab character" in str(error.problem)
        if (key := _without_colon(source.lines, line)) and any(sign in str(error.problem) for sign in _COLON):
            raise _error(source, *key[:2], f"not valid YAML here; is a ':' missing after '{key[2]}'?") from None
        if bracket := _not_closed(error):
            raise _error(source, *bracket) from None
        raise _error(source, line, column, _syntax(error, source.lines, line, column, tab)) from None
    except pyyaml.YAMLError as error:
        raise _error(source, 0, 0, str(error).splitlines()[0]) from None
    except RecursionError:
        raise _error(source, 0, 0, f"nested deeper than {MAX_DEPTH} levels") from None


def _events(parser: Any) -> Iterator[Any]:
    while True:
        event = parser.get_event()
        if event is None or isinstance(event, pyyaml.StreamEndEvent):
            return
        yield event


#: Parser messages for a key without a colon, there or in the line below.
_COLON = ("mapping values are not allowed", "could not find expected ':'")
_BEFORE_BRACKET = re.compile(r"\s*(?:- )?([A-Za-z_]\w*)\s+[{\[]")
_ALONE = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:#.*)?$")
_FIRST = re.compile(r"([A-Za-z_]\w*) [^:]*$")


def _without_colon(lines: Sequence[str], line: int) -> tuple[int, int, str] | None:
    """Line, end column and name of a probable key without its colon, in `line` or in the line with text above: before a
    bracket, alone above a block, or at the beginning of the line."""
    above = next((i for i in range(line - 1, -1, -1) if lines[i].strip()), line)
    block = above < line and _indent(lines[above]) < _indent(lines[line])
    candidates = [(_BEFORE_BRACKET, line), (_BEFORE_BRACKET, above), *[(_ALONE, above)] * block, (_FIRST, above)]
    matches = ((number, pattern.match(lines[number])) for pattern, number in candidates)
    return next(((number, match.end(1), match[1]) for number, match in matches if match), None)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _not_closed(error: pyyaml.MarkedYAMLError) -> tuple[int, int, str] | None:
    """Line and column of a bracket or quote that is not closed in its line or at all, and the message."""
    begin, end, context = error.context_mark, error.problem_mark, str(error.context)
    if begin is None or end is None or end.line == begin.line:
        return None
    for inside, mark in (("flow mapping", "{"), ("flow sequence", "["), ("quoted scalar", "quote")):
        if inside in context:
            opening = "this quote" if mark == "quote" else f"this '{mark}'"
            return begin.line, begin.column, f"not valid YAML: {opening} is not closed"
    return None


def _syntax(error: pyyaml.MarkedYAMLError, lines: Sequence[str], line: int, column: int, tab: bool) -> str:
    """One sentence, with a hint for frequent mistakes."""
    problem = error.problem or "not valid YAML"
    if tab:
        return "not valid YAML: a tab is not allowed here; indent with spaces, not tabs"
    first = line < len(lines) and not lines[line][:column].strip()
    begin = error.context_mark.line + 1 if error.context_mark is not None else 0
    context = str(error.context or "")
    block_ends = "<block end>" in problem  # the pure Python parser words it differently
    if "did not find expected key" in problem or (block_ends and "mapping" in context):
        if not first:
            return (
                "not valid YAML: unexpected text after the value; a text with quotes or brackets needs quotes around it"
            )
        reference = f"line {begin}, where this mapping begins" if begin > 1 else "the lines above"
        return f"not valid YAML: indented differently from {reference}"
    if ("did not find expected '-'" in problem or (block_ends and "collection" in context)) and first:
        return f"not valid YAML: line {begin} begins a list, so each entry needs a '-' in the same column"
    hint = ""
    if "mapping values are not allowed" in problem:
        hint = "; a text that contains ': ' needs quotes"
        above = next((i for i in range(line - 1, -1, -1) if lines[i].strip()), line)
        if ":" not in lines[line][:column] and _indent(lines[above]) < _indent(lines[line]):
            return f"not valid YAML: indented further than line {above + 1}, which has a value already"
    elif "did not find expected ','" in problem:
        hint = "; a text with brackets or commas needs quotes there"
    return f"not valid YAML: {problem}{' ' if context else ''}{context}{hint}"


def _position_within_text(source: Source, line: int, column: int) -> tuple[int, int]:
    """The position itself, or the end of the last line with text if the parser stopped after it."""
    while line > 0 and (line >= len(source.lines) or not source.lines[line].strip()):
        line -= 1
        column = len(source.lines[line]) if line < len(source.lines) else 0
    return line, column


def _error(source: Source, line: int, column: int, message: str, length: int = 1) -> StudyError:
    text = source.lines[line] if line < len(source.lines) else ""
    return StudyError(
        [Issue(source.name, line + 1, column + 1, column + 1 + length, "", abbreviate(message), error_line(text))]
    )


@dataclass
class _OpenCollection:
    """A collection whose end has not been reached."""

    node: Node
    anchor: str | None
    key: str | None = None
    key_span: Span | None = None


@dataclass
class _Builder:
    source: Source
    values: int = 0
    anchors: dict[str, Node] = field(default_factory=dict)
    open_anchors: set[str] = field(default_factory=set)

    def document(self, events: Iterator[Any]) -> Node:
        stack: list[_OpenCollection] = []
        root: Node | None = None
        documents = 0
        for event in events:
            kind = type(event)
            if kind is pyyaml.ScalarEvent:
                node = self._scalar(event)
            elif kind is pyyaml.AliasEvent:
                node = self._alias(event, len(stack))
            elif kind in (pyyaml.MappingStartEvent, pyyaml.SequenceStartEvent):
                self._refuse_tag(event)
                self._count(1, event)
                if len(stack) >= MAX_DEPTH:
                    raise self._fail(event, f"nested deeper than {MAX_DEPTH} levels")
                mapping = kind is pyyaml.MappingStartEvent
                style = ("{" if mapping else "[") if event.flow_style else ""
                if stack and stack[-1].node.entries is not None and stack[-1].key is None:
                    raise self._fail(event, "a key must be a word")
                node = Node(
                    self._span(event), items=None if mapping else [], entries={} if mapping else None, style=style
                )
                stack.append(_OpenCollection(node, event.anchor))
                if event.anchor:
                    self.anchors.pop(event.anchor, None)
                    self.open_anchors.add(event.anchor)
                continue
            elif kind in (pyyaml.MappingEndEvent, pyyaml.SequenceEndEvent):
                level = stack.pop()
                node = level.node
                end = event.end_mark if node.style else event.start_mark
                node.span = node.span._replace(end_line=end.line, end_column=end.column)
                if level.anchor:
                    self.open_anchors.discard(level.anchor)
                    self.anchors[level.anchor] = node
            else:
                if kind is pyyaml.DocumentStartEvent:
                    documents += 1
                    if documents > 1:
                        raise self._fail(event, "a study file holds one document; remove the second '---'", 3)
                continue
            if stack:
                self._attach(stack[-1], node, event)
            else:
                root = node
        if root is None:
            raise _error(self.source, 0, 0, "the study file is empty")
        return root

    def _attach(self, parent: _OpenCollection, node: Node, event: Any) -> None:
        """Attach a complete value (or key) to the open collection."""
        if parent.node.items is not None:
            parent.node.items.append(node)
        elif parent.key is None:
            if type(event) is pyyaml.AliasEvent:
                raise self._fail(event, "a key must be a word, not an alias")
            self._key(parent, node, event)
            return
        else:
            assert parent.node.entries is not None
            assert parent.key_span is not None
            parent.node.entries[parent.key] = (parent.key_span, node)
            parent.key = None
        parent.node.size += node.size
        parent.node.height = max(parent.node.height, node.height + 1)

    def _key(self, parent: _OpenCollection, node: Node, event: Any) -> None:
        assert parent.node.entries is not None
        key = node.scalar
        length = max(1, node.span.end_column - node.span.column)
        if key == "<<" and not node.style:
            raise self._fail(event, "merge keys ('<<') are not allowed; write the keys out", length)
        if isinstance(key, (int, float)) and parent.node.style == "{" and parent.node.entries:
            raise self._fail(
                event, f"a key must be a word, not {event.value}; write a decimal point, not a comma", length
            )
        if not isinstance(key, str):
            raise self._fail(event, f"a key must be a word; put quotes around {event.value or 'it'}", length)
        if key in parent.node.entries:
            first = parent.node.entries[key][0].line + 1
            raise self._fail(event, f"key '{key}' is given twice (first in line {first})", length)
        parent.key, parent.key_span = key, node.span

    def _scalar(self, event: Any) -> Node:
        self._refuse_tag(event)
        self._count(1, event)
        plain = not event.style
        try:
            value = plain_scalar(event.value) if plain else event.value
        except ValueError:
            raise self._fail(event, "a number with too many digits") from None
        node = Node(self._span(event), value, style="" if plain else event.style)
        if event.anchor:
            self.anchors[event.anchor] = node
            self.open_anchors.discard(event.anchor)
        return node

    def _alias(self, event: Any, depth: int) -> Node:
        target = self.anchors.get(event.anchor)
        length = len(event.anchor) + 1
        if event.anchor in self.open_anchors:
            raise self._fail(event, f"'*{event.anchor}' is inside the value that it repeats", length)
        if target is None:
            raise self._fail(event, f"'*{event.anchor}' is not defined; write &{event.anchor} before a value", length)
        self._count(target.size, event)
        if depth + target.height > MAX_DEPTH:
            raise self._fail(event, f"nested deeper than {MAX_DEPTH} levels", length)
        return target

    def _count(self, values: int, event: Any) -> None:
        self.values += values
        if self.values > MAX_VALUES:
            raise self._fail(event, f"more than {MAX_VALUES} values, aliases expanded")

    def _refuse_tag(self, event: Any) -> None:
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            raise self._fail(event, f"tags ('{tag}') are not allowed")

    def _span(self, event: Any) -> Span:
        start, end = event.start_mark, event.end_mark
        return Span(self.source, start.line, start.column, end.line, end.column)

    def _fail(self, event: Any, message: str, length: int = 1) -> StudyError:
        return _error(self.source, event.start_mark.line, event.start_mark.column, message, length)


def plain_scalar(text: str) -> Any:
    """A plain scalar by the core schema of YAML 1.2. Raises `ValueError` for an extremely long integer."""
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first in "0123456789+-.":
        if _INT.fullmatch(text):
            return int(text)
        if _BASED.fullmatch(text):
            return int(text, 0)
        if _FLOAT.fullmatch(text):
            return float(text)
    return text


def node_of(value: Any, source: Source, depth: int = 0) -> Node:
    """A node without a position, for values from Python or ``--set``.

    Raises `StudyError` for data nested too deeply (or within itself).
    """
    if depth > MAX_DEPTH:
        raise StudyError([Issue(source.name, None, None, None, "", f"nested deeper than {MAX_DEPTH} levels")])
    span = Span(source, 0, 0, 0, 0)
    if isinstance(value, Mapping):
        return Node(span, entries={str(k): (span, node_of(v, source, depth + 1)) for k, v in value.items()})
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return Node(span, items=[node_of(v, source, depth + 1) for v in value])
    return Node(span, scalar=value)


_IN_BRACKETS = ("low", "high")


def locate(root: Node, path: Sequence[str | int]) -> tuple[Span | None, Node | None]:
    """Span of the key at `path` (None for list items and the root) and its node; node None if there is nothing.

    In a range in brackets, ``[0, 100]``, the steps `low` and `high` lead to its two values.
    """
    key: Span | None = None
    node = root
    for step in path:
        if node.entries is not None and step in node.entries:
            key, node = node.entries[str(step)]
        elif node.items is not None and isinstance(step, int) and 0 <= step < len(node.items):
            key, node = None, node.items[step]
        elif node.items is not None and step in _IN_BRACKETS and len(node.items) == len(_IN_BRACKETS):
            key, node = None, node.items[_IN_BRACKETS.index(step)]
        else:
            return None, None
    return key, node


def inner_offset(node: Node, offset: int) -> tuple[int, int] | None:
    """Line and column (from 0) of character `offset` of a scalar's text; None inside escapes or blocks."""
    span, lines, value = node.span, node.span.source.lines, node.scalar
    if node.style not in ("", "'", '"') or not isinstance(value, str) or span.line >= len(lines):
        return None
    line, column = span.line, span.column + (1 if node.style else 0)
    for position, character in enumerate(value):
        while column >= len(lines[line]) and line < span.end_line:  # folded onto the next line
            line += 1
            column = len(lines[line]) - len(lines[line].lstrip())
            if character == " " and position == offset:
                return line, column
        if column >= len(lines[line]):
            return None
        source_character = lines[line][column]
        if position == offset:
            return (line, column) if source_character == character else None
        if source_character == character:
            column += 2 if source_character == "'" and node.style == "'" else 1
        elif character != " " or line == span.line:
            return None
    return (line, column) if offset == len(value) else None
