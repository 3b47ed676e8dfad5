"""Templates of input files: Jinja2 in its sandbox, with the formats of engineering input files.

Undefined names are errors. Files for Dakota's ``aprepro`` are templates with single braces, ``{thickness}``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jinja2
import jinja2.meta
import jinja2.nodes
import jinja2.sandbox

from designopt.plugin import closest
from designopt.study.language import units

#: Suffixes of templates that the written files do not have.
SUFFIXES = (".j2", ".jinja", ".template")
#: A delimiter that no file contains: it switches a construct of Jinja2 off.
_NEVER = "\x01\x02"


class TemplateMistake(ValueError):
    """A template cannot be read or filled; the text begins with file and line."""


class UnitNumber(float):
    """A number with the `unit` of its input. Results of arithmetic are plain numbers."""

    unit: str

    @classmethod
    def with_unit(cls, value: float, unit: str) -> UnitNumber:
        """`value` in `unit`."""
        number = cls(value)
        number.unit = unit
        return number

    def __str__(self) -> str:
        return float.__repr__(self)


@dataclass(frozen=True)
class DeckTemplate:
    """A template by the `name` of its file."""

    name: str
    _code: jinja2.Template
    #: The names that it uses, each with the line of its first use.
    names: Mapping[str, int]
    #: Those for which it tests whether they are defined: inputs that a design may lack.
    optional: frozenset[str]
    #: Those to which it assigns a value itself, perhaps in one branch alone.
    local_names: frozenset[str]

    @classmethod
    def read(cls, name: str, text: str, *, aprepro: bool = False) -> DeckTemplate:
        """The template in `text`. Raises `TemplateMistake` for a mistake in its syntax."""
        environment = _environment(aprepro)
        try:
            tree = environment.parse(text)
            names = jinja2.meta.find_undeclared_variables(tree)
            code = environment.from_string(tree)
        except jinja2.TemplateSyntaxError as error:
            raise TemplateMistake(f"{name}:{error.lineno}: {_syntax_message(error, aprepro)}") from None
        lines: dict[str, int] = {}
        local_names = set()
        for node in tree.find_all(jinja2.nodes.Name):
            if node.name in names:
                lines.setdefault(node.name, node.lineno)
            if node.ctx == "store":
                local_names.add(node.name)
        tests = [test for test in tree.find_all(jinja2.nodes.Test) if test.name in ("defined", "undefined")]
        optional = frozenset(test.node.name for test in tests if isinstance(test.node, jinja2.nodes.Name))
        return cls(name, code, lines, optional, frozenset(local_names))

    def unknown(self, inputs: Iterable[str]) -> list[str]:
        """A sentence for each name that is neither among the `inputs` nor `local_names`."""
        names = list(inputs)
        sentences = []
        for name, line in self.names.items():
            if name not in names and name not in self.local_names:
                near = closest(name, names)
                hint = f"did you mean '{near}'?" if near else f"inputs are {', '.join(names) or 'none'}"
                sentences.append(f"{self.name}:{line}: '{name}' is not an input; {hint}")
        return sentences

    def fill(self, values: Mapping[str, Any]) -> str:
        """The text with `values`. Raises `TemplateMistake` with the line of the mistake."""
        try:
            return self._code.render(values)
        except Exception as error:  # also a division by zero and the like in an expression
            raise TemplateMistake(f"{self.name}:{_line(error)}: {error}") from None


@lru_cache(maxsize=2)
def _environment(aprepro: bool) -> jinja2.Environment:
    delimiters: dict[str, str] = {}
    if aprepro:
        delimiters = {
            "variable_start_string": "{",
            "variable_end_string": "}",
            "block_start_string": f"{_NEVER}%",
            "block_end_string": f"%{_NEVER}",
            "comment_start_string": f"{_NEVER}#",
            "comment_end_string": f"#{_NEVER}",
        }
    environment = jinja2.sandbox.SandboxedEnvironment(
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        optimized=False,  # nothing is computed while a study is checked
        **delimiters,
    )
    environment.globals.clear()
    environment.globals["range"] = jinja2.sandbox.safe_range
    environment.filters.update({"in": in_unit, "fixed": fixed, "exponent": exponent})
    return environment


def _syntax_message(error: jinja2.TemplateSyntaxError, aprepro: bool) -> str:
    message = (error.message or "is not a template").rstrip(".")
    if message.startswith("No filter named"):
        name = message.split("'")[1]
        filters = _environment(aprepro).filters
        near = closest(name, filters)
        return f"there is no filter '{name}'" + (
            f"; did you mean '{near}'?" if near else "; filters for files are in, fixed, exponent"
        )
    if "'^'" in message:
        return "a power is written **, not ^"
    return message


def _line(error: BaseException) -> int:
    """The line of the template at which it failed."""
    line, frame = 0, error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == "<template>":
            line = frame.tb_lineno
        frame = frame.tb_next
    return line


# ----------------------------------------------------------------------------------------------------------- filters


def in_unit(value: Any, unit: str) -> float:
    """``{{ thickness | in("mm") }}``: the number in another unit of the same dimension. Raises `ValueError`."""
    if not isinstance(value, UnitNumber):
        raise ValueError(
            f"in('{unit}') converts an input, which has a unit, not {_in_words(value)}; convert first:"
            f" (x | in('{unit}'))"
        )
    number = units.convert(float(value), value.unit, unit)
    return UnitNumber.with_unit(number, unit)


def fixed(value: Any, width: int, decimals: int | None = None) -> str:
    """``{{ x | fixed(8, 3) }}``: right-aligned in `width` columns with `decimals`; without these as many digits as fit,
    as for NASTRAN's fields. Raises `ValueError` for a number that does not fit."""
    if isinstance(value, (str, bool)) or (isinstance(value, int) and decimals is None):
        text = str(value)
    elif decimals is not None:
        text = f"{_number(value):.{decimals}f}"
    else:
        text = _most_precise(_number(value), width)
    if len(text) > width:
        raise ValueError(f"{text} does not fit into {width} columns")
    return text.rjust(width)


def exponent(value: Any, width: int = 0, decimals: int = 6, letter: str = "D") -> str:
    """``{{ x | exponent(14, 6) }}``: as Fortran writes D14.6, ``1.234567D+01``; `letter` may be ``E``. Raises
    `ValueError` for a number that does not fit."""
    text = f"{_number(value):.{decimals}E}".replace("E", letter)
    if width and len(text) > width:
        raise ValueError(f"{text} does not fit into {width} columns")
    return text.rjust(width)


def _most_precise(value: float, width: int) -> str:
    """The number with the most digits that fit into `width` columns, always with a decimal point."""
    best, error = "", math.inf
    for digits in range(17, 0, -1):
        for form in (f"{value:.{digits}g}", f"{value:.{digits - 1}E}"):
            mantissa, e, power = form.upper().partition("E")
            text = (mantissa if "." in mantissa else f"{mantissa}.") + (f"E{int(power):+d}" if e else "")
            if len(text) <= width and abs(float(text) - value) < error:
                best, error = text, abs(float(text) - value)
    return best or repr(value)


def _number(value: Any) -> float:
    if isinstance(value, (str, bool)) or not isinstance(value, (int, float)):
        raise ValueError(f"a number is needed, not {_in_words(value)}")
    return float(value)


def _in_words(value: Any) -> str:
    return f"the word '{value}'" if isinstance(value, str) else f"the number {value}"
