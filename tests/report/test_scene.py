"""Motions are drawn from arrays, small enough for a page, and a frame that is clicked is shown in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np
import pytest
from browser import errors, headless_browser, open_page, wait_until

import designopt
from designopt.plugin import Array, Quantity, model
from designopt.report.designs import stored_arrays
from designopt.report.drawing import BYTES, DrawnMotion, draw
from designopt.report.page.page import write_report
from designopt.report.parts.answer.best import best
from designopt.report.parts.motion.frames import Frames
from designopt.report.parts.motion.scene import Scene

ARRAYS = {
    "time": Array(("time",), "s", "of the frames"),
    "scene": Array(("time", "vertex", "axis"), "m", "a pendulum"),
    "wires": Array(("time", "wire", "vertex", "axis"), "m", "two springs"),
    "tension": Array(("time", "wire"), "N", "of the springs"),
    "load": Array(("time", "force", "part", "axis"), "", "point and force"),
    "status": Array(("time",), "", "of the frames"),
}
N = 50


class Swing(TypedDict):
    reach: Annotated[float, Quantity("m", "farthest place")]


@model("scene_pendulum", version=1, arrays=ARRAYS)
def pendulum(
    design: Mapping[str, Any], scenario: Mapping[str, Any], arrays: frozenset[str]
) -> tuple[Swing, dict[str, Any]]:
    """A pendulum that swings between two springs; some frames cannot be used."""
    t = np.linspace(0.0, 2.0, N)
    angle = 0.5 * np.cos(np.pi * t)
    bob = float(design["length"]) * np.stack([np.sin(angle), -np.cos(angle)], axis=1)
    scene = np.stack([np.zeros_like(bob), bob], axis=1)
    walls = np.array([[-1.0, -1.0], [1.0, -1.0]])
    wires = np.stack([np.stack([np.tile(w, (N, 1)), bob], axis=1) for w in walls], axis=1)
    series = {
        "time": t,
        "scene": scene,
        "wires": wires,
        "tension": np.linalg.norm(wires[:, :, 1] - wires[:, :, 0], axis=2),
        "load": np.stack([bob, np.tile([0.0, -9.81], (N, 1))], axis=1)[:, None],
        "status": np.where((t > 0.5) & (t < 0.7), 2, 0),
    }
    return {"reach": float(np.abs(bob).max())}, {name: series[name] for name in arrays}


def analysed(tmp_path: Path, plots: list[Any]) -> Any:
    study = designopt.define(
        study="swing",
        model=pendulum,
        space={"length": [0.5, 1.0]},
        objectives=[{"name": "reach", "minimize": "reach"}],
        solver={"use": "full_factorial", "levels": 2},
        execution={"executor": "serial", "arrays": dict.fromkeys(ARRAYS, "all")},
        report={"plots": plots},
    )
    return study.run(tmp_path / "swing.study")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Any:
    plots = [
        {"use": "scene", "wires": "wires", "colour": "tension", "forces": ["load"]},
        {"use": "frames", "status": "status", "of": ["tension"]},
    ]
    return analysed(tmp_path_factory.mktemp("scene"), plots)


def test_a_scene_shows_every_frame_of_a_short_motion(result: Any) -> None:
    section = Scene(wires="wires", colour="tension", forces=["load"])(result)
    (figure,) = section.figures
    assert [choice.label for choice in figure.choices] == ["Design"]
    plot = figure.plot
    assert len(plot["frames"]) == N
    assert plot["layout"]["meta"]["times"][-1] == pytest.approx(2.0)
    assert plot["frames"][0]["traces"] == [*range(len(plot["data"]))]
    arrow = plot["frames"][0]["data"][-1]
    assert arrow["x"][0] == arrow["x"][1]  # weight points down
    assert arrow["y"][1] < arrow["y"][0]


def test_the_commands_that_recompute_designs_say_how_to_keep_their_arrays(result: Any) -> None:
    section = best(result)
    assert section is not None
    (commands,) = (table for table in section.tables if table.title == "Commands to recompute them")
    note = "--arrays FILE.npz at its end saves the arrays of the design: time, scene, wires, tension and 2 more."
    assert commands.note == note


def test_a_design_that_the_study_names_has_its_name_in_the_selector(tmp_path: Path) -> None:
    study = designopt.define(
        study="named",
        model=pendulum,
        space={"length": [0.5, 1.0]},
        solver={"use": "evaluate", "designs": [{"name": "short", "length": 0.5}, {"name": "long", "length": 1.0}]},
        execution={"executor": "serial", "arrays": {"time": "all", "scene": "all"}},
    )
    (figure,) = Scene()(study.run(tmp_path / "named.study")).figures
    assert figure.choices[0].options == ("short", "long")


def test_wires_change_their_colour_with_the_array(result: Any) -> None:
    plot = Scene(wires="wires", colour="tension")(result).figures[0].plot

    def filled(frame: Mapping[str, Any]) -> list[int]:
        return [k for k, trace in enumerate(frame["data"][1:9]) if trace["x"]]

    assert len(filled(plot["frames"][0])) == 2  # one spring is long, the other short
    assert filled(plot["frames"][0]) != filled(plot["frames"][N // 3])


@pytest.mark.parametrize("axes", [2, 3])
def test_two_hundred_frames_of_a_hundred_segments_are_at_most_a_megabyte(axes: int) -> None:
    rng = np.random.default_rng(0)
    segments = np.full((200, 100, 3, axes), np.nan)
    segments[:, :, :2] = rng.uniform(-1.0, 1.0, (200, 100, 2, axes))
    plot = draw(DrawnMotion(np.linspace(0.0, 2.0, 200), {"bodies": segments.reshape(200, 300, axes)}))
    assert len(json.dumps(plot, separators=(",", ":"))) < 1_000_000
    assert len(plot["frames"]) >= min(200, BYTES // (300 * axes * 7))
    assert plot["data"][0]["type"] == ("scatter3d" if axes == 3 else "scatter")


def test_a_planar_motion_in_space_is_drawn_in_its_plane() -> None:
    places = np.random.default_rng(1).uniform(-1.0, 1.0, (5, 4, 3))
    places[..., 1] = 0.25
    plot = draw(DrawnMotion(np.arange(5.0), {"bodies": places}))
    assert plot["data"][0]["type"] == "scatter"
    assert plot["layout"]["yaxis"]["title"]["text"] == "z [m]"
    assert plot["data"][0]["y"] == pytest.approx(places[0, :, 2], abs=1e-4)


def test_a_mechanism_whose_links_are_in_line_at_first_is_shown_where_it_is_spread_out() -> None:
    """A slider-crank; one that is spread out at first is shown there."""

    def still(first_angle: float) -> tuple[int, float, str]:
        angle = first_angle + np.linspace(0.0, 2.0 * np.pi, 101)
        pin = 0.05 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        slider = np.stack([pin[:, 0] + np.sqrt(0.2**2 - pin[:, 1] ** 2), np.zeros(101)], axis=1)
        lines = np.stack([np.zeros_like(pin), pin, slider], axis=1)
        plot = draw(DrawnMotion(np.linspace(0.0, 2.0, 101), {"links": lines}))
        number = plot["layout"]["sliders"][0]["active"]
        assert plot["data"][0]["y"] == plot["frames"][number]["data"][0]["y"]
        return number, max(map(abs, plot["data"][0]["y"])), plot["layout"]["sliders"][0]["steps"][number]["label"]

    number, height, label = still(0.0)
    assert height > 0.04
    assert label == f"{0.02 * number:.4g} s"
    assert still(0.5)[0] == 0


def test_unknown_places_are_gaps_and_never_spread() -> None:
    places = np.zeros((4, 2, 2))
    places[:, 1] = np.arange(8).reshape(4, 2)
    places[2] = np.nan
    plot = draw(DrawnMotion(np.arange(4.0), {"raw": places, "consistent": np.nan_to_num(places)}))
    assert plot["frames"][2]["data"][0]["x"] == [None, None]
    assert plot["frames"][2]["data"][1]["x"] == [0.0, 0.0]
    assert np.isfinite(plot["layout"]["xaxis"]["range"]).all()
    json.dumps(plot, allow_nan=False)


def test_frames_are_counted_by_status(result: Any) -> None:
    section = Frames(status="status", of=["tension"])(result)
    assert [figure.title for figure in section.figures] == ["status", "tension"]
    assert section.figures[0].plot["layout"]["meta"] == {"jump": True}
    rows = [row[2:5] for row in section.tables[0].rows][:2]
    assert rows == [("0", 45, "90 %"), ("2", 5, "10 %")]


def test_parts_say_which_arrays_are_missing(tmp_path: Path) -> None:
    study = designopt.define(
        study="bare", model=pendulum, space={"length": [0.5, 1.0]}, objectives=[{"name": "r", "minimize": "reach"}],
        solver={"use": "full_factorial", "levels": 2}, execution={"executor": "serial"},
    )  # fmt: skip
    bare = study.run(tmp_path / "bare.study")
    assert "{time: all, scene: all}" in Scene()(bare).introduction
    assert "{time: all, status: all}" in Frames(status="status")(bare).introduction


def test_an_array_of_another_shape_is_named(result: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"array 'tension' has shape \(50, 2\): 3 axes are drawn"):
        Scene(lines=["tension"])(result)


def test_a_click_on_a_frame_shows_it_in_the_scene(result: Any, tmp_path: Path) -> None:
    write_report(result, tmp_path / "report.html")
    find = "[...document.querySelectorAll('figure .plot')].find(p => p.layout?.meta?.%s)"
    with headless_browser(tmp_path / "profile") as browser:
        open_page(browser, tmp_path / "report.html")
        browser.execute_script(f"{find % 'jump'}.emit('plotly_click', {{points: [{{x: 1.0}}]}})")
        design = next(iter(stored_arrays(result, "scene")))
        times = np.linspace(0.0, 2.0, N)
        nearest = int(np.abs(times - 1.0).argmin())
        bob_position = float(stored_arrays(result, "scene")[design]["scene"][nearest, 1, 0])
        script = f"return {find % 'times'}.data[0].x[1]"
        wait_until(lambda: abs(browser.execute_script(script) - bob_position) < 1e-3, "the frame is shown")
        assert errors(browser) == []


def test_axes_have_the_names_of_the_model_and_the_last_one_is_up() -> None:
    time = np.arange(3.0)
    places = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 4, 3))
    scene = draw(DrawnMotion(time, {"bodies": places}, axes=("x", "-z", "y")))["layout"]["scene"]
    assert [scene[f"{axis}axis"]["title"]["text"] for axis in "xyz"] == ["x [m]", "-z [m]", "y [m]"]
    assert max(scene["aspectratio"].values()) == 1.0
    flat = draw(DrawnMotion(time, {"bodies": places * [1.0, 0.3, 0.3]}))["layout"]["scene"]
    eyes = [np.linalg.norm([*one["camera"]["eye"].values()]) for one in (flat, scene)]
    assert eyes[0] < 0.85 * eyes[1]  # nearer to what fills a part of its box
    plane = draw(DrawnMotion(time, {"bodies": places[..., :2]}, axes=("x", "-z", "y")))["layout"]
    assert [plane[axis]["title"]["text"] for axis in ("xaxis", "yaxis")] == ["x [m]", "y [m]"]
