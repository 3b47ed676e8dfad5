"""The page on the knee shows the parameter set that is computed with."""

import re
from pathlib import Path

from designopt_knee.parameters import SUBSTITUTE_V1, quantities

PAGE = Path(__file__).parents[2] / "docs" / "four_bar_knee.md"


def test_the_table_of_parameters_holds_every_value_unit_and_source():
    rows = re.findall(r"^\| `(\w+)` \| .*? \| (\S+) \| (.*?) \| ([PRS]) \|", PAGE.read_text(), flags=re.MULTILINE)
    table = {name: (float(value), unit, source) for name, value, unit, source in rows}
    assert set(table) == set(SUBSTITUTE_V1)
    for name, parameter in SUBSTITUTE_V1.items():
        value, unit, source = table[name]
        assert abs(value - parameter.value) <= 5e-6 * abs(parameter.value), name
        assert (unit, source) == (quantities()[name].unit or "-", parameter.source), name
