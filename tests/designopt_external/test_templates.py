"""Templates of input files: units, fixed columns, exponents of Fortran; the sandbox."""

import pytest
from designopt_external.program.numbers import number
from designopt_external.program.templates import DeckTemplate, TemplateMistake, UnitNumber

VALUES = {
    "t": UnitNumber.with_unit(0.00123456789, "m"),
    "n": 3,
    "word": "steel",
    "zero": UnitNumber.with_unit(0.0, "m"),
}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{{ t }}", "0.00123456789"),
        ('{{ t | in("mm") }}', "1.23456789"),
        ('{{ t | in("mm") | fixed(8) }}', "1.234568"),
        ('{{ t | in("mm") | fixed(8, 2) }}', "    1.23"),
        ("{{ t | fixed(8) }}", "0.001235"),
        ("{{ n | fixed(4) }}{{ word | fixed(6) }}", "   3 steel"),
        ("{{ 2.0 | fixed(6) }}", "    2."),
        ("{{ t | exponent }}", "1.234568D-03"),
        ('{{ t | exponent(12, 3, "E") }}', "   1.235E-03"),
        ('{{ (t | in("mm")) * 2 }}', "2.46913578"),
        ("{% for i in range(n) %}{{ i }} {% endfor %}", "0 1 2 "),
        ("{% if thickness is defined %}x{% endif %}", ""),
    ],
)
def test_values_are_written_in_the_format_of_input_files(text: str, filled: str) -> None:
    assert DeckTemplate.read("deck.inp", text).fill(VALUES) == filled


def test_the_value_in_a_template_is_exact() -> None:
    assert float(DeckTemplate.read("deck.inp", "{{ t }}").fill(VALUES)) == 0.00123456789


def test_a_name_that_one_branch_assigns_is_no_unknown_input() -> None:
    text = "{% if n > 5 %}{% set layer = 0.5 %}{{ layer }}{% endif %}"
    template = DeckTemplate.read("deck.inp", text)
    assert template.unknown(["n"]) == []
    assert template.fill({"n": 10}) == "0.5"
    unset = DeckTemplate.read("deck.inp", f"{text}\n{{{{ layer }}}}")
    with pytest.raises(TemplateMistake, match=r"deck.inp:2: 'layer' is undefined"):
        unset.fill({"n": 1})
    assert unset.unknown([]) == ["deck.inp:1: 'n' is not an input; inputs are none"]


def test_an_aprepro_template_has_single_braces() -> None:
    template = DeckTemplate.read("deck.inp", "{n}, {n ** 2}, {t | in('mm') | fixed(6)}", aprepro=True)
    assert template.fill(VALUES) == "3, 9, 1.2346"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n\n{{ x }}", "deck.inp:3: 'x' is undefined"),
        ("a\n{{ t | in('kg') }}", "deck.inp:2: 'm' cannot be converted to 'kg'"),
        ("a\n{{ (t * 2) | in('mm') }}", "deck.inp:2: in('mm') converts an input, which has a unit, not the number"),
        ("{{ n | in('mm') }}", "deck.inp:1: in('mm') converts an input"),
        ("{{ t | fixed(2, 3) }}", "deck.inp:1: 0.001 does not fit into 2 columns"),
        ("{{ word | exponent }}", "deck.inp:1: a number is needed, not the word 'steel'"),
        ("a\n{{ 1 / zero }}", "deck.inp:2: float division by zero"),
        ("{{ word.__class__.__mro__ }}", "deck.inp:1: access to attribute '__class__'"),
        ("{% for i in range(10 ** 9) %}{% endfor %}", "deck.inp:1: Range too big"),
    ],
)
def test_a_mistake_in_a_template_has_its_line(text: str, message: str) -> None:
    with pytest.raises(TemplateMistake) as raised:
        DeckTemplate.read("deck.inp", text).fill(VALUES)
    assert str(raised.value).startswith(message)


def test_nothing_is_computed_while_a_template_is_read() -> None:
    DeckTemplate.read("deck.inp", "{{ 9 ** 9 ** 9 ** 9 }}")  # would never end


def test_a_template_includes_no_other_file() -> None:
    with pytest.raises(TemplateMistake, match=r"deck\.inp:1"):
        DeckTemplate.read("deck.inp", "{% include 'secret' %}").fill(VALUES)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5", 1.5),
        ("1.5D+03", 1500.0),
        ("-2.5d-1", -0.25),
        ("1.5-101", 1.5e-101),
        ("1.5+101", 1.5e101),
        (".5E2", 50.0),
    ],
)
def test_numbers_of_fortran_are_read(text: str, value: float) -> None:
    assert number(text) == value


@pytest.mark.parametrize("text", ["", "x", "1_000", "*******", "1.5.2", "0x10"])
def test_other_texts_are_no_numbers(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        number(text)
