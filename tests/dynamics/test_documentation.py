"""What the page on simulation shows runs as it stands."""

import re
from pathlib import Path

import numpy as np

PAGE = (Path(__file__).parents[2] / "docs" / "theory" / "simulation.md").read_text(encoding="utf-8")


def test_the_function_over_rows_of_the_page_gives_the_planar_arm():
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(block, names)
    angles = names["angles"]
    expected = np.column_stack([np.cos(angles) @ [0.3, 0.25], np.sin(angles) @ [0.3, 0.25]])
    np.testing.assert_allclose(names["place"], expected, atol=1e-15)
    np.testing.assert_allclose(names["jacobian"][:, 1, 0], 0.3 * np.cos(angles[:, 0]), atol=1e-15)
