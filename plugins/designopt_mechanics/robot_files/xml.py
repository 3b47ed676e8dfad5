"""XML with the position of every element, by expat: no document types, no entities, nothing from outside the file."""

from __future__ import annotations

import math
import xml.parsers.expat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from xml.sax.saxutils import escape, quoteattr

#: Elements within elements, beyond which a file is no model.
_DEEPEST = 200


class ModelError(ValueError):
    """A model file that cannot be used: `path` of the element, `line` and `column` (from 1), and why."""

    def __init__(self, path: str, line: int, column: int, message: str) -> None:
        super().__init__(f"line {line}, column {column}, {path or 'the file'}: {message}")
        self.path = path
        self.line = line
        self.column = column
        self.message = message


@dataclass(eq=False)
class Element:
    """One element: its tag, name (or ''), text, children, and where it stands."""

    tag: str
    attributes: dict[str, str]
    line: int = 0
    column: int = 0
    parent: Element | None = None
    children: list[Element] = field(default_factory=list)
    text: str = ""

    @property
    def name(self) -> str:
        return self.attributes.get("name", "")

    @property
    def path(self) -> str:
        """Tags, with names, from the root to here."""
        label = f'{self.tag} "{self.name}"' if self.name else self.tag
        return label if self.parent is None else f"{self.parent.path}/{label}"

    def error(self, message: str) -> ModelError:
        """An error at this place, to be raised."""
        return ModelError(self.path, self.line, self.column, message)

    def find(self, *tags: str) -> Element | None:
        """The first child with this tag, and in it the first with the next one, and so on."""
        element = self
        for tag in tags:
            for child in element.children:
                if child.tag == tag:
                    element = child
                    break
            else:
                return None
        return element

    def need(self, *tags: str) -> Element:
        """The element as `find` gives it; raises `ModelError` where there is none."""
        element = self.find(*tags)
        if element is None:
            raise self.error(f"has no element <{'/'.join(tags)}>")
        return element

    def with_defaults(self, default: Element | None) -> Element:
        """This element with the children of `default` that it does not have itself."""
        tags = {child.tag for child in self.children}
        default_children = [] if default is None else [child for child in default.children if child.tag not in tags]
        return replace(self, children=[*self.children, *default_children])

    def set_text(self, tag: str, text: str) -> None:
        """Set the text of a child, which is appended if it is not there."""
        element = self.find(tag)
        if element is None:
            element = Element(tag, {}, self.line, self.column, self)
            self.children.append(element)
        element.text = text

    def set_numbers(self, tag: str, values: Iterable[float]) -> None:
        """Set the numbers in a child, with all their digits."""
        self.set_text(tag, " ".join(repr(float(value)) for value in values))

    def walk(self) -> Iterator[Element]:
        """This element and all within it."""
        yield self
        for child in self.children:
            yield from child.walk()

    def word(self, tag: str, default: str = "") -> str:
        """The text of a child, without blanks at its ends."""
        element = self.find(tag)
        return default if element is None else element.text.strip()

    def number(self, tag: str, default: float | None = None, *, infinite: bool = False) -> float:
        """The number in a child. Raises `ModelError` when it is not one, or not there and there is no default."""
        (value,) = self.numbers(tag, 1, None if default is None else (default,), infinite=infinite)
        return value

    def numbers(
        self,
        tag: str,
        count: int | None = None,
        default: tuple[float, ...] | None = None,
        *,
        infinite: bool = False,
    ) -> list[float]:
        """The numbers in a child, `count` of them when it is given; `infinite` allows limits without an end."""
        element = self.find(tag)
        if element is None and default is not None:
            return list(default)
        return self.need(tag).values(count, infinite=infinite)

    def values(self, count: int | None = None, *, infinite: bool = False) -> list[float]:
        """The numbers in this element. Raises `ModelError` for NaN, and for infinity unless `infinite`."""
        values = self._numbers(self.text, "", infinite=infinite)
        if count is not None and len(values) != count:
            raise self.error(f"contains {len(values)} numbers, not {count}")
        return values

    def attribute(self, key: str, counts: tuple[int, ...], default: tuple[float, ...] | None = None) -> list[float]:
        """The finite numbers in an attribute, as many as one of `counts`.

        Raises `ModelError` when they are others, or when it is absent and there is no default.
        """
        if key not in self.attributes:
            if default is None:
                raise self.error(f"has no attribute {key}")
            return list(default)
        values = self._numbers(self.attributes[key], f"{key}: ", infinite=False)
        if len(values) not in counts:
            count_text = " or ".join(str(count) for count in counts)
            raise self.error(f"{key} contains {len(values)} numbers, not {count_text}")
        return values

    def _numbers(self, text: str, prefix: str, *, infinite: bool) -> list[float]:
        values = []
        for word in text.split():
            try:
                value = float(word)
            except ValueError:
                raise self.error(f"{prefix}'{word}' is not a number") from None
            if math.isnan(value):
                raise self.error(f"{prefix}holds NaN")
            if math.isinf(value) and not infinite:
                raise self.error(f"{prefix}'{word}' is not finite")
            values.append(value)
        return values

    def flag(self, tag: str, default: bool) -> bool:
        """true or false in a child."""
        element = self.find(tag)
        if element is None:
            return default
        word = element.text.strip().lower()
        if word not in ("true", "false"):
            raise element.error(f"'{word}' is neither true nor false")
        return word == "true"


def parse(content: bytes) -> Element:
    """The root element of an XML file. Raises `ModelError` with line and column."""
    parser = xml.parsers.expat.ParserCreate()
    parser.SetParamEntityParsing(xml.parsers.expat.XML_PARAM_ENTITY_PARSING_NEVER)
    parser.buffer_text = True
    root: list[Element] = []
    stack: list[Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        position = parser.CurrentLineNumber, parser.CurrentColumnNumber + 1
        element = Element(tag, attributes, *position, stack[-1] if stack else None)
        if len(stack) >= _DEEPEST:
            raise element.error(f"elements are nested more than {_DEEPEST} deep")
        (stack[-1].children if stack else root).append(element)
        stack.append(element)

    def end(tag: str) -> None:
        stack.pop()

    def data(text: str) -> None:
        if stack:
            stack[-1].text += text

    def refuse(*_: object) -> None:
        line, column = parser.CurrentLineNumber, parser.CurrentColumnNumber + 1
        raise ModelError("", line, column, "document types and entities are not supported; remove them from the file")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = data
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except xml.parsers.expat.ExpatError as error:
        message = xml.parsers.expat.ErrorString(error.code)
        raise ModelError("", error.lineno, error.offset + 1, f"is not well-formed XML: {message}") from None
    return root[0]


def document(root: Element) -> bytes:
    """The XML file of an element and all within it, in UTF-8; comments of a file that was read are not kept."""
    lines = ['<?xml version="1.0" encoding="UTF-8" ?>']

    def write(element: Element, indent: str) -> None:
        attributes = "".join(f" {name}={quoteattr(value)}" for name, value in element.attributes.items())
        head = f"{indent}<{element.tag}{attributes}"
        if element.children:
            lines.append(f"{head}>")
            for child in element.children:
                write(child, f"{indent}\t")
            lines.append(f"{indent}</{element.tag}>")
        elif text := element.text.strip():
            lines.append(f"{head}>{escape(text)}</{element.tag}>")
        else:
            lines.append(f"{head} />")

    write(root, "")
    return ("\n".join(lines) + "\n").encode()
