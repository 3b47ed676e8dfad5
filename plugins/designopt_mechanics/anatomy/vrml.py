"""The accepted subset of VRML97: read with the position of every mistake, written so that it reads back the same."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from designopt.arrays import Floats
from designopt.study.language.errors import Issue, StudyError, abbreviate, error_line
from designopt.study.language.findings import nearest_or_all
from designopt_mechanics.anatomy.geometry import SECTIONS, FixedPoint, Geometry, Strand, placement

HEADER = "#VRML V2.0 utf8"
_FIELDS = {"translation": 3, "rotation": 4, "center": 3, "scale": 3, "scaleOrientation": 4}
_ELEMENT = re.compile(r"[RLC]_(Mus|Ten|Lig)_\w+")
_TOKEN = re.compile(
    r'[\s,]+|#[^\n]*|(?P<string>"(?:[^"\\]|\\.)*")|(?P<mark>[{}\[\]])|(?P<word>[^\s,#"{}\[\]]+)|(?P<bad>")'
)
_MOST_BYTES, _MOST_DEPTH = 16 * 1024 * 1024, 60
#: Points of a wire that are nearer to each other than this (m) are one.
_SAME = 1e-9
_MARKS = ("{", "}", "[", "]")


@dataclass(frozen=True)
class _Token:
    text: str
    at: int


@dataclass
class _Node:
    """A Transform with its name, the position of the name, fields and Transforms below it."""

    name: str
    at: int
    fields: dict[str, tuple[float, ...]] = field(default_factory=dict)
    children: list[_Node] = field(default_factory=list)


def read_vrml(content: bytes, name: str) -> Geometry:
    """The geometry in the bytes of a file called `name`; raises `StudyError` with line and column of a mistake."""
    if len(content) > _MOST_BYTES:
        raise StudyError([Issue(name, 1, 1, 2, "", "a VRML file has at most 16 MiB")])
    text = content.decode("utf-8", errors="replace")
    return _Reader(text, name).geometry()


class _Reader:
    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        self.lines = text.split("\n")
        if not text.startswith(HEADER):
            raise self.wrong(0, f"the first line must be '{HEADER}'")
        self.tokens: list[_Token] = []
        for match in _TOKEN.finditer(text, len(HEADER)):
            if match["bad"]:
                raise self.wrong(match.start(), "this string is never closed")
            if match.lastgroup:
                self.tokens.append(_Token(match[match.lastgroup], match.start()))
        self.next = 0

    # --------------------------------------------------------------------------------------------------- tokens

    def wrong(self, at: int, message: str, length: int = 1) -> StudyError:
        line = self.text.count("\n", 0, at)
        column = at - (self.text.rfind("\n", 0, at) + 1)
        issue = Issue(
            self.name, line + 1, column + 1, column + 1 + length, "", abbreviate(message), error_line(self.lines[line])
        )
        return StudyError([issue])

    def peek(self) -> str:
        return self.tokens[self.next].text if self.next < len(self.tokens) else ""

    def take(self, expectation: str = "") -> _Token:
        if self.next >= len(self.tokens):
            raise self.wrong(
                max(0, len(self.text.rstrip()) - 1), f"the file ends where {expectation or 'more'} is expected"
            )
        token = self.tokens[self.next]
        if expectation in _MARKS and token.text != expectation:
            raise self.wrong(token.at, f"'{expectation}' is expected here, not '{token.text[:40]}'", len(token.text))
        self.next += 1
        return token

    def skip(self) -> None:
        """Skip the value of an unknown field or node. Raises `StudyError` for unbalanced brackets."""
        brackets: list[_Token] = []
        while True:
            token = self.take("a value")
            if token.text in "{[":
                brackets.append(token)
            elif token.text in "}]":
                if not brackets or "{[".index(brackets[-1].text) != "}]".index(token.text):
                    raise self.wrong(token.at, f"'{token.text}' closes nothing here")
                brackets.pop()
            if brackets:
                if self.next >= len(self.tokens):
                    raise self.wrong(brackets[-1].at, f"this '{brackets[-1].text}' is never closed")
                continue
            if self.peek() not in ("{", "["):
                return

    # ---------------------------------------------------------------------------------------------------- nodes

    def node(self, depth: int) -> _Node | None:
        """The next node of a list of children; None for one that is skipped."""
        token = self.take()
        if depth > _MOST_DEPTH:
            raise self.wrong(token.at, f"nested deeper than {_MOST_DEPTH} levels")
        name, at = "", token.at
        if token.text == "USE":
            self.take()
            return None
        if token.text == "DEF":
            name_token = self.take("a name")
            name, at = name_token.text, name_token.at
            token = self.take("a node")
        if token.text != "Transform":
            if self.peek() != "{":
                raise self.wrong(token.at, f"a node is expected here, not '{token.text[:40]}'", len(token.text))
            self.skip()
            return None
        return self.transform(_Node(name, at), depth)

    def transform(self, node: _Node, depth: int) -> _Node:
        bracket = self.take("{")
        while self.peek() != "}":
            if not self.peek():
                raise self.wrong(bracket.at, "this '{' is never closed")
            token = self.take()
            if token.text in _FIELDS:
                node.fields[token.text] = self.numbers(token, _FIELDS[token.text])
            elif token.text == "children":
                node.children += self.children(depth)
            elif token.text in ("{", "[", "]"):
                raise self.wrong(token.at, f"a field is expected here, not '{token.text}'")
            else:
                while self.peek() not in ("}", "children", *_FIELDS, ""):
                    self.skip()
                    if self.tokens[self.next - 1].text in "}]":
                        break
        self.take("}")
        self.check(node)
        return node

    def children(self, depth: int) -> list[_Node]:
        if self.peek() != "[":
            only = self.node(depth + 1)
            return [] if only is None else [only]
        bracket = self.take("[")
        nodes = []
        while self.peek() != "]":
            if not self.peek():
                raise self.wrong(bracket.at, "this '[' is never closed")
            node = self.node(depth + 1)
            if node is not None:
                nodes.append(node)
        self.take("]")
        return nodes

    def numbers(self, field_: _Token, count: int) -> tuple[float, ...]:
        numbers = []
        for _ in range(count):
            token = self.take("a number")
            try:
                value = float(token.text)
            except ValueError:
                raise self.wrong(
                    token.at, f"'{field_.text}' has {count} numbers; '{token.text[:40]}' is not one"
                ) from None
            if not math.isfinite(value) or abs(value) > 1e9:
                raise self.wrong(token.at, f"{token.text[:40]} is not a usable number", len(token.text))
            numbers.append(value)
        return tuple(numbers)

    def check(self, node: _Node) -> None:
        if any(node.fields.get("scaleOrientation", (0.0, 0.0, 1.0, 0.0))[3:]):
            raise self.wrong(node.at, "scaleOrientation must be left at its default")
        if not all(node.fields.get("scale", (1.0,))):
            raise self.wrong(node.at, "a scale is not zero")

    # ------------------------------------------------------------------------------------------------- meaning

    def geometry(self) -> Geometry:
        world = None
        while self.peek():
            token = self.tokens[self.next]
            if token.text in ("PROTO", "EXTERNPROTO", "Script", "ROUTE"):
                raise self.wrong(token.at, f"'{token.text}' is not accepted", len(token.text))
            if token.text in "{}[]":
                raise self.wrong(token.at, f"a node is expected here, not '{token.text}'")
            node = self.node(0)
            if node is not None and node.name == "world":
                world = node
        if world is None:
            raise self.wrong(len(HEADER), "there is no 'DEF world Transform'")
        self.check_names(world)
        top = placement(world.fields)
        section_names = ("bones", "virtual_bones", *SECTIONS.values())
        sections: dict[str, tuple[_Node, Floats]] = {}
        for section in world.children:
            if section.name not in section_names:
                raise self.wrong(
                    section.at, f"no section '{section.name}'{nearest_or_all(section.name, section_names)}"
                )
            sections[section.name] = (section, top @ placement(section.fields))
        bones, virtual = (self.links(sections.get(name), name) for name in ("bones", "virtual_bones"))
        wires = [
            self.wire(node, kind, at @ placement(node.fields), {**bones, **virtual})
            for kind, name in SECTIONS.items()
            if name in sections
            for (section, at) in [sections[name]]
            for node in section.children
        ]
        return Geometry(bones, virtual, tuple(wires))

    def check_names(self, world: _Node) -> None:
        """Every name stands once."""
        names: set[str] = set()
        waiting = [world]
        while waiting:
            node = waiting.pop(0)
            if node.name and node.name in names:
                raise self.wrong(node.at, f"'{node.name}' is defined twice", len(node.name))
            names.add(node.name)
            waiting = node.children + waiting

    def links(self, section: tuple[_Node, Floats] | None, group: str) -> dict[str, Floats]:
        transforms: dict[str, Floats] = {}
        for node in section[0].children if section else []:
            if not node.name.isidentifier():
                raise self.wrong(
                    node.at, f"'{node.name[:40]}' is not a valid name for one of {group}", max(1, len(node.name))
                )
            transform = section[1] @ placement(node.fields) if section else np.eye(4)
            size = np.linalg.norm(transform[:3, :3], axis=0)
            if np.ptp(size) > 1e-9 * size.max():
                raise self.wrong(node.at, f"'{node.name}' is scaled differently along its axes", len(node.name))
            transform[:3, :3] /= size
            transforms[node.name] = transform
        return transforms

    def wire(self, node: _Node, kind: str, at: Floats, links: Mapping[str, Floats]) -> Strand:
        match = _ELEMENT.fullmatch(node.name)
        if match is None:
            text = (
                f"'{node.name[:60]}' is not a valid name of a wire: R, L or C, then _Mus_, _Ten_ or _Lig_, then a name"
            )
            raise self.wrong(node.at, text, max(1, len(node.name)))
        if match[1] != kind:
            raise self.wrong(node.at, f"'{node.name}' is listed under the {SECTIONS[kind]}", len(node.name))
        tags: dict[str, FixedPoint] = {}
        for point in node.children:
            tag, link = self.tag(node, point)
            if link not in links:
                text = f"no bone or virtual link '{link}'{nearest_or_all(link, links)}"
                raise self.wrong(point.at, text, len(point.name))
            if tag in tags:
                raise self.wrong(point.at, f"'{node.name}' has a second point {tag}", len(point.name))
            x, y, z = (float(v) for v in (at @ placement(point.fields))[:3, 3])
            tags[tag] = FixedPoint(link, (x, y, z))
        for end_tag in ("Org", "End"):
            if end_tag not in tags:
                raise self.wrong(node.at, f"'{node.name}' has no point {end_tag}", len(node.name))
        vias = sorted(int(tag) for tag in tags if tag not in ("Org", "End"))
        if vias != list(range(1, len(vias) + 1)):
            raise self.wrong(
                node.at, f"the via points of '{node.name}' are numbered {vias}, not 1, 2, ...", len(node.name)
            )
        points = [tags["Org"], *(tags[str(n)] for n in vias), tags["End"]]
        if len({p.link for p in points}) == 1:
            raise self.wrong(node.at, f"'{node.name}' lies on '{points[0].link}' alone: its length is constant")
        for first, second in pairwise(points):
            if math.dist(first.position, second.position) < _SAME:
                raise self.wrong(node.at, f"'{node.name}' has two points at the same place", len(node.name))
        return Strand(node.name, tuple(points))

    def tag(self, wire: _Node, point: _Node) -> tuple[str, str]:
        """Tag and link of a point, whose name begins with that of its wire."""
        label = point.name.removeprefix(f"{wire.name}_")
        tag, _, link = label.partition("_")
        number = tag.isascii() and tag.isdigit() and tag[0] != "0" and len(tag) < 7
        if label == point.name or not link or not (tag in ("Org", "End") or number):
            text = (
                f"'{point.name[:80]}' is not a point of '{wire.name}': the wire's name, then _Org_, _End_ or _1_, then"
                " a link"
            )
            raise self.wrong(point.at, text, max(1, len(point.name)))
        return tag, link
