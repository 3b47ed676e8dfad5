"""Colours of lines stand out from the ground of both themes."""

import pytest

from designopt.report.colours import CATEGORIES, ORDERED_LINES, STEPS, THEMED, axis, log_ticks


def luminance(colour: str) -> float:
    red, green, blue = ((int(colour[k : k + 2], 16) / 255) ** 2.2 for k in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", [0, 1])
def test_every_colour_of_the_lines_stands_out_from_the_ground_of_its_theme(theme: int) -> None:
    ground = luminance(THEMED["@surface"][theme])
    for name in (*(name for _, name in ORDERED_LINES), *STEPS):
        dark, light = sorted((ground, luminance(THEMED[name][theme])))
        assert (light + 0.05) / (dark + 0.05) > 2.5


def test_colours_of_categories_stand_out_from_a_dark_ground() -> None:
    ground = luminance(THEMED["@surface"][1])
    assert min((luminance(THEMED[name][1]) + 0.05) / (ground + 0.05) for name in CATEGORIES) > 4.5


@pytest.mark.parametrize(
    ("ends", "most", "ticks"),
    [
        ((0.2, 20.0), 8, [0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0]),
        ((0.2, 20.0), 4, [0.3, 1.0, 3.0, 10.0]),
        ((20.0, 600.0), 4, [30.0, 100.0, 300.0]),
        ((1e-5, 1e5), 4, [1e-5, 1e-2, 10.0, 1e4]),
        ((10.0, 14.0), 8, [10.0, 11.0, 12.0, 13.0, 14.0]),
    ],
)
def test_a_log_axis_has_several_round_ticks(ends: tuple[float, float], most: int, ticks: list[float]) -> None:
    assert log_ticks(*ends, most) == pytest.approx(ticks)


def test_an_axis_over_another_has_round_ticks_of_its_own() -> None:
    """By default Plotly writes its values beside the ticks of the other: 3.26, 6.81 and 10.37."""
    assert axis("distance [mm]", overlaying="y")["tickmode"] == "auto"
    assert "tickmode" not in axis("force [N]")
