"""Colours of lines stand out from the ground of both themes."""

from __future__ import annotations

import pytest

from designopt.report.colours import CATEGORIES, ORDERED_LINES, THEMED


def luminance(colour: str) -> float:
    red, green, blue = ((int(colour[k : k + 2], 16) / 255) ** 2.2 for k in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", [0, 1])
def test_every_colour_of_the_lines_stands_out_from_the_ground_of_its_theme(theme: int) -> None:
    ground = luminance(THEMED["@surface"][theme])
    for _, name in ORDERED_LINES:
        dark, light = sorted((ground, luminance(THEMED[name][theme])))
        assert (light + 0.05) / (dark + 0.05) > 2.5


def test_colours_of_categories_stand_out_from_a_dark_ground() -> None:
    ground = luminance(THEMED["@surface"][1])
    assert min((luminance(THEMED[name][1]) + 0.05) / (ground + 0.05) for name in CATEGORIES) > 4.5
