"""Units: the table of common ones agrees with pint; amounts are read with care."""

import math
import subprocess
import sys

import pytest

from designopt.study.language import units
from designopt.study.language.units import KNOWN, UnitError


@pytest.fixture(scope="module")
def registry():
    """Pint's own units."""
    import pint

    return pint.UnitRegistry()


@pytest.mark.parametrize("name", KNOWN)
def test_the_table_of_common_units_agrees_with_pint(registry, name) -> None:
    size, dimension = KNOWN[name]
    quantity = registry.Quantity(1.0, "percent" if name == "%" else name).to_base_units()
    expected = {"[length]": dimension[0], "[mass]": dimension[1], "[time]": dimension[2], "[temperature]": dimension[3]}
    dimensions = dict(quantity.dimensionality)
    assert dimensions == {k: v for k, v in expected.items() if v}
    assert math.isclose(quantity.to_base_units().magnitude, size, rel_tol=1e-14)


COMPOUND = [
    "kN/m",
    "N s/m",
    "N/cm^2",
    "kg m^2",
    "m/s^2",
    "1/cycle",
    "deg/s",
    "N m",
    "rad/s^2",
    "W/kg",
    "N*s/m",
    "kg/m**3",
    "mm/(1)",
]


@pytest.mark.parametrize("unit", COMPOUND[:-1])
def test_compound_units_agree_with_pint(registry, unit) -> None:
    base = registry.Quantity(1.0, unit).to_base_units()
    size, _ = units._quick_unit(unit)
    assert math.isclose(size, base.magnitude, rel_tol=1e-13)


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (5.0, "mm", "m", 0.005),
        (0.005, "m", "mm", 5.0),
        (12.0, "kN/m", "N/m", 12000.0),
        (3.0, "mm", "cm", 0.3),
        (180.0, "deg", "rad", math.pi),
        (2.0, "h", "s", 7200.0),
        (1.0, "cycle", "deg", 360.0),
        (20.0, "degC", "K", 293.15),
        (1.0, "lbf", "N", 4.4482216152605),
        (1.0, "inch", "mm", 25.4),
        (50.0, "%", "", 0.5),
        (7.0, "N/(m)", "kN/m", 0.007),
    ],
)
def test_values_are_converted(value, source, target, expected) -> None:
    assert units.convert(value, source, target) == pytest.approx(expected, rel=1e-14)


def test_decimal_prefixes_do_not_leave_rounding_behind() -> None:
    assert units.factor_offset("mm", "m") == (0.001, 0.0)
    assert units.factor_offset("kN/m", "N/m") == (1000.0, 0.0)
    assert all(units.convert(float(n), "mm", "m") == n / 1000 for n in range(1000))


@pytest.mark.parametrize(("a", "b"), [("m", "s"), ("N m", "N/m"), ("deg", "s"), ("degC", "m"), ("foot", "s")])
def test_different_dimensions_do_not_convert(a, b) -> None:
    assert not units.same_dimension(a, b)
    with pytest.raises(UnitError, match="cannot be converted"):
        units.convert(1.0, a, b)


@pytest.mark.parametrize(
    "bad", ["qq", "m//s", "m**", "m^999", "9**9**9", "__import__('os')", "m;s", "(" * 50, "m^^2", "ö!", "[m]"]
)
def test_invalid_units_are_refused_at_once(bad) -> None:
    with pytest.raises(UnitError):
        units.check(bad)


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("12 kN/m", 12.0, "kN/m"),
        ("12", 12.0, None),
        ("-1.5e3mm", -1500.0, "mm"),
        (" 5 % ", 5.0, "%"),
        ("3 1/s", 3.0, "1/s"),
    ],
)
def test_numbers_with_units_are_read(text, value, unit) -> None:
    assert units.parse_amount(text) == units.Amount(value, unit)


@pytest.mark.parametrize("bad", ["", "kN", "1 2 m", "1,5 m", "1 qq", "nan m", "inf", "1 m\nx", "1__0", "--1"])
def test_text_that_is_not_a_number_with_a_unit_is_refused(bad) -> None:
    with pytest.raises(UnitError):
        units.parse_amount(bad)


@pytest.mark.parametrize(
    ("a", "b", "power", "expected"),
    [
        ("N/m", "m", 1, "N"),
        ("N", "mm", -1, "N/mm"),
        ("", "s", -1, "1/s"),
        ("m", "m", -1, ""),
        ("", "", 1, ""),
        ("m^2", "s", -1, "m^2/s"),
        ("°C", "s", 1, "°C s"),
    ],
)
def test_units_of_products(a, b, power, expected) -> None:
    assert units.product(a, b, power) == expected


def test_common_units_do_not_load_pint() -> None:
    code = (
        "import sys; from designopt.study.language import units as u; u.convert(1.0, 'kN s/mm', 'N s/m');"
        "u.check('1/cycle');"
        "u.parse_amount('3 kg m^2'); print('pint' in sys.modules)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "False"


def test_a_unit_for_a_plain_number_is_refused_with_the_ways_out() -> None:
    with pytest.raises(
        units.UnitError, match="'MPa' cannot be converted to a plain number; remove the unit, or declare"
    ):
        units.convert(160.0, "MPa", "")


def test_a_unit_that_is_not_a_plain_number_is_answered_with_the_way_out_in_any_notation() -> None:
    for unit in ("N/m", "%/degC"):  # the second needs pint
        with pytest.raises(units.UnitError, match=f"^'{unit}' cannot be converted to a plain number; remove the unit"):
            units.factor_offset(unit, "")


def test_a_calculation_is_no_unit_and_its_result_is_asked_for():
    with pytest.raises(units.UnitError, match=r"'1/8' is not a unit; write the result of a calculation, 0\.125$"):
        units.check("1/8")
    with pytest.raises(units.UnitError, match=r"'1/0' is not a unit; write the result of a calculation$"):
        units.check("1/0")
