"""Units of measurement: conversion, and numbers with a unit (``12 kN/m``).

Pint is the reference. Its import takes longer than the check of a whole study file, so common units of mechanics are
listed here too, with the same factors; other units load pint.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

#: Exponents of metre, kilogram, second, kelvin; angles are dimensionless, as in the SI.
Dimension = tuple[float, float, float, float]

_NONE: Dimension = (0.0, 0.0, 0.0, 0.0)
_M, _KG, _S, _K = (1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0)
_FORCE: Dimension = (1.0, 1.0, -2.0, 0.0)
_PRESSURE: Dimension = (-1.0, 1.0, -2.0, 0.0)
_ENERGY: Dimension = (2.0, 1.0, -2.0, 0.0)
_POWER: Dimension = (2.0, 1.0, -3.0, 0.0)

#: Unit -> (size in SI base units, dimension).
KNOWN: dict[str, tuple[float, Dimension]] = {
    "m": (1.0, _M),
    "km": (1e3, _M),
    "cm": (1e-2, _M),
    "mm": (1e-3, _M),
    "um": (1e-6, _M),
    "kg": (1.0, _KG),
    "g": (1e-3, _KG),
    "t": (1e3, _KG),
    "s": (1.0, _S),
    "ms": (1e-3, _S),
    "us": (1e-6, _S),
    "min": (60.0, _S),
    "h": (3600.0, _S),
    "K": (1.0, _K),
    "N": (1.0, _FORCE),
    "kN": (1e3, _FORCE),
    "MN": (1e6, _FORCE),
    "Pa": (1.0, _PRESSURE),
    "kPa": (1e3, _PRESSURE),
    "MPa": (1e6, _PRESSURE),
    "GPa": (1e9, _PRESSURE),
    "bar": (1e5, _PRESSURE),
    "J": (1.0, _ENERGY),
    "kJ": (1e3, _ENERGY),
    "W": (1.0, _POWER),
    "kW": (1e3, _POWER),
    "Hz": (1.0, (0.0, 0.0, -1.0, 0.0)),
    "rad": (1.0, _NONE),
    "deg": (math.pi / 180.0, _NONE),
    "cycle": (2.0 * math.pi, _NONE),
    "rpm": (2.0 * math.pi / 60.0, (0.0, 0.0, -1.0, 0.0)),
    "percent": (1e-2, _NONE),
    "%": (1e-2, _NONE),
}

_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_ALLOWED = re.compile(r"[\w%°µμΩ·*/^ ().+-]{1,60}")
_FACTOR = re.compile(r"\s*([*/·]?)\s*([^\W\d_]\w*|%|°[CF]?|1(?![.\d]))(?:(?:\^|\*\*)\(?([-+]?\d(?:\.\d+)?)\)?)?\s*")

#: Pint evaluates any power, even 9**9**9: here exponents have one digit and no exponent of their own, and 1 is the only
#: other number.
_EXPONENT = re.compile(r"(?:\^|\*\*)\s*(?:\d(?:\.\d+)?|\([-+]?\d(?:\.\d+)?\)|[-+]\d)(?![\d.])")
_TOWER = re.compile(rf"(?:{_EXPONENT.pattern})\s*(?:\^|\*\*)")
_NUMERAL = re.compile(r"(?<!\w)(?!1(?!\w))\d|\d\.|\.\d")
#: A quotient or product of two plain numbers.
_CALCULATION = re.compile(r"(\d+\.?\d*)\s*([*/])\s*(\d+\.?\d*)")

#: A unit as named factors with their exponents, in the order of writing.
Factors = tuple[tuple[str, float], ...]


class UnitError(ValueError):
    """A unit does not exist, or two are incompatible; the message is for the user."""


@dataclass(frozen=True)
class Amount:
    """A number with its given unit, None without one."""

    value: float
    unit: str | None = None

    def text_in(self, unit: str) -> str:
        """The number as given, in `unit` if it has none."""
        return f"{self.value!r} {self.unit or unit}".rstrip()

    def value_in(self, unit: str) -> float:
        """The number in `unit`, which is also the default. Raises `UnitError`."""
        return self.value if self.unit in (None, unit) else convert(self.value, str(self.unit), unit)


def split(unit: str) -> Factors | None:
    """The factors of a unit such as ``N s/m^2``; None for parentheses or names known only to pint."""
    factors: dict[str, float] = {}
    position = 0
    text = unit.strip()
    while position < len(text):
        match = _FACTOR.match(text, position)
        if match is None or (position == 0 and match[1]):
            return None
        power = float(match[3]) if match[3] else 1.0
        name = match[2]
        if name != "1":
            factors[name] = factors.get(name, 0.0) + (-power if match[1] == "/" else power)
        position = match.end()
    return tuple((name, power) for name, power in factors.items() if power)


def join(factors: Factors) -> str:
    """The unit with these factors, divisors last: ``N s/m``."""
    over = [_power(name, p) for name, p in factors if p > 0.0]
    under = [_power(name, -p) for name, p in factors if p < 0.0]
    return "/".join([" ".join(over) or ("1" if under else ""), *under])


def _power(name: str, power: float) -> str:
    return name if power == 1.0 else f"{name}^{power:g}"


def power_unit(unit: str, power: float) -> str:
    """The unit of a value in `unit` raised to `power`."""
    factors = split(unit)
    if factors is None:
        return f"({unit})^{power:g}"
    return join(tuple((name, p * power) for name, p in factors if p * power))


def product(a: str, b: str, power: float = 1.0) -> str:
    """The unit of the product of a value in `a` and a value in `b` raised to `power` (-1 for a quotient)."""
    left, right = split(a), split(b)
    if left is None or right is None:
        return f"({a or '1'})*({b or '1'})^{power:g}"
    total = dict(left)
    for name, p in right:
        total[name] = total.get(name, 0.0) + power * p
    return join(tuple((name, p) for name, p in total.items() if p))


@lru_cache(maxsize=1024)
def _quick_unit(unit: str) -> tuple[float, Dimension] | None:
    factors = split(unit)
    if factors is None:
        return None
    size, dimension = 1.0, _NONE
    for name, power in factors:
        size_and_dimension = KNOWN.get(name)
        if size_and_dimension is None:
            return None
        size *= size_and_dimension[0] ** power
        dimension = tuple(d + power * e for d, e in zip(dimension, size_and_dimension[1], strict=True))  # type: ignore[assignment]
    return size, dimension


@lru_cache(maxsize=1)
def _registry() -> Any:
    import pint

    return pint.UnitRegistry()


def _result(text: str) -> str:
    """``, 0.5`` for ``1/2``; "" for a text that is no quotient or product of two plain numbers."""
    match = _CALCULATION.fullmatch(text.strip())
    if match is None or (match[2] == "/" and float(match[3]) == 0.0):
        return ""
    left, right = float(match[1]), float(match[3])
    return f", {left / right if match[2] == '/' else left * right!r}"


@lru_cache(maxsize=1024)
def _pint_unit(unit: str) -> Any:
    """The unit as pint's. Raises `UnitError` for an unknown one."""
    import tokenize

    import pint

    bare = _EXPONENT.sub("", unit)
    if not unit:
        return _registry().parse_units("")
    if (
        not _ALLOWED.fullmatch(unit)
        or _TOWER.search(unit)
        or "^" in bare
        or "**" in bare
        or "//" in bare
        or _NUMERAL.search(bare)
    ):
        way_out = f"; write the result of a calculation{_result(unit)}" if bare[:1].isdigit() else ""
        raise UnitError(f"'{unit[:40]}' is not a unit{way_out}")
    try:
        return _registry().parse_units(unit.replace("%", "percent").replace("·", "*"))
    except pint.UndefinedUnitError as error:
        unknown = error.unit_names if isinstance(error.unit_names, str) else ", ".join(error.unit_names)
        context = "" if unknown == unit else f" in '{unit}'"
        near = _BY_LETTERS.get(_letters(unknown))
        raise UnitError(f"unknown unit '{unknown}'{context}" + (f"; did you mean '{near}'?" if near else "")) from None
    except (pint.PintError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError, SyntaxError) as error:
        del error
        raise UnitError(f"'{unit}' is not a unit") from None
    except (tokenize.TokenError, AssertionError, IndexError, RecursionError):
        raise UnitError(f"'{unit}' is not a unit") from None


def check(unit: str) -> None:
    """Raise `UnitError` if `unit` does not exist."""
    if unit and _quick_unit(unit) is None:
        _pint_unit(unit)


#: The size of a unit in SI base units, and its exponents of metre, kilogram, second, kelvin, ampere, mole, candela.
Measure = tuple[float, tuple[float, ...]]
_BASES = ("[length]", "[mass]", "[time]", "[temperature]", "[current]", "[substance]", "[luminosity]")


@lru_cache(maxsize=1024)
def measure(unit: str) -> Measure | None:
    """The measure of `unit`; None if no factor converts it to SI units (such as degrees Celsius).

    Raises `UnitError` if it does not exist.
    """
    if (quick_measure := _quick_unit(unit)) is not None:
        return quick_measure[0], (*quick_measure[1], 0.0, 0.0, 0.0)
    pint_unit = _pint_unit(unit)
    dimension = {name: float(power) for name, power in pint_unit.dimensionality.items()}
    if set(dimension) - set(_BASES):
        return None
    quantity = _registry().Quantity
    zero, factor = (float(quantity(value, pint_unit).to_base_units().magnitude) for value in (0.0, 1.0))
    return None if zero else (factor, tuple(dimension.get(base, 0.0) for base in _BASES))


def same_dimension(a: str, b: str) -> bool:
    """Whether values in `a` and `b` can be compared. Raises `UnitError` for a unit that does not exist."""
    if a == b:
        check(a)
        return True
    quick_a, quick_b = _quick_unit(a), _quick_unit(b)
    if quick_a is not None and quick_b is not None:
        return all(math.isclose(x, y, abs_tol=1e-9) for x, y in zip(quick_a[1], quick_b[1], strict=True))
    return bool(_pint_unit(a).dimensionality == _pint_unit(b).dimensionality)


@lru_cache(maxsize=4096)
def factor_offset(from_unit: str, to_unit: str) -> tuple[float, float]:
    """`factor` and `offset` with ``value in to_unit = factor * value in from_unit + offset``.

    The offset is 0 except for temperatures. Raises `UnitError` if the dimensions differ or a unit does not exist.
    """
    if from_unit == to_unit:
        check(from_unit)
        return 1.0, 0.0
    if not same_dimension(from_unit, to_unit):
        raise UnitError(
            f"{unit_text(from_unit)} cannot be converted to {unit_text(to_unit)}{_suggestion(from_unit, to_unit)}"
        )
    a, b = _quick_unit(from_unit), _quick_unit(to_unit)
    if a is not None and b is not None:
        return _tidy(a[0] / b[0]), 0.0
    registry, source, target = _registry(), _pint_unit(from_unit), _pint_unit(to_unit)
    zero = float(registry.Quantity(0.0, source).to(target).magnitude)
    slope = float(registry.Quantity(1.0, source).to(target).magnitude)
    if abs(zero) <= 1e-12 * abs(slope):
        return _tidy(slope), 0.0
    return _tidy(float(registry.Quantity(1e3, source).to(target).magnitude - zero) / 1e3), zero


def _tidy(factor: float) -> float:
    """The short decimal (or its reciprocal) within rounding of a factor: 1e-3 and not 0.0010000000000000002."""
    short = float(f"{factor:.14g}")
    inverse = float(f"{1.0 / factor:.14g}")
    if inverse == round(inverse) and abs(inverse) < 1e12:
        return 1.0 / inverse
    return short if len(repr(short)) < 12 else factor


def convert(value: float, from_unit: str, to_unit: str) -> float:
    """`value` in `from_unit` converted to `to_unit`. Raises `UnitError` if the dimensions differ."""
    factor, offset = factor_offset(from_unit, to_unit)
    if offset == 0.0 and factor != 0.0 and abs(factor) < 1.0 and (1.0 / factor).is_integer():
        return value / (1.0 / factor)  # 5 mm is 0.005 m exactly as written, not 5 * 0.001 rounded twice
    return factor * value + offset


def _letters(unit: str) -> str:
    """A unit reduced to lower-case letters without separators."""
    return re.sub(r"[\s*·]", "", unit).lower()


_BY_LETTERS = {_letters(unit): unit for unit in ("N m", "kN m", *KNOWN)}


def _suggestion(unit: str, target: str) -> str:
    """``; did you mean 'km'?`` if a unit compatible with `target` has the same letters as `unit`. For a target without
    a unit: the two ways out."""
    if not target:
        return "; remove the unit, or declare it where the quantity is defined"
    near = target if _letters(unit) == _letters(target) else _BY_LETTERS.get(_letters(unit), "")
    return f"; did you mean '{near}'?" if near and same_dimension(near, target) else ""


def unit_text(unit: str) -> str:
    """The unit in a sentence: ``'N/m'``, or "a plain number" for none."""
    return f"'{unit}'" if unit else "a plain number"


def parse_amount(text: str) -> Amount:
    """``12 kN/m`` -> Amount(12.0, 'kN/m'); ``12`` -> Amount(12.0, None).

    Raises `UnitError` unless it is a number followed by an optional unit.
    """
    number = text.strip()
    match = _NUMBER.match(number)
    if match is None or not number.isprintable():
        raise UnitError(f"'{text[:40]}' is not a number")
    unit = number[match.end() :].strip()
    if unit and not re.match(r"[^\W\d_]|[%°(/]|1/", unit):
        raise UnitError(f"'{text[:40]}' is not a number")
    if unit.startswith("/"):
        unit = "1" + unit
    check(unit)
    return Amount(float(match[0]), unit or None)
