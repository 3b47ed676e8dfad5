"""The report part of static sharing: what it draws of which arrays, and what it leaves out."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from designopt_muscle.report.balances import _balance
from designopt_muscle.report.joint_reactions import reaction_parts
from designopt_muscle.report.named_muscles import drawn_muscles, named_muscles
from designopt_muscle.report.sharing import margin_figure, muscle_sharing

import designopt

STUDIES = Path(__file__).parents[2] / "studies"

STUDY = """\
study: mini
title: Weak leg
model: {{use: muscle_sharing, reserve: {reserve}, {emg}}}
scenarios: [{{name: trial, {file}}}]
solver:
  use: evaluate
  designs: [{designs}]
execution:
  executor: serial
  arrays: [time, muscles, coordinates, activations, muscle_moments, net_moments, reserves, shortfall, strength_factor,
           status, signals, margin, joints, reactions, fibre_lengths, notes]
"""
STRONG, WEAK = "{name: strong, strength: 1.0}", "{name: weak, strength: 0.5}"


def section(folder, designs, reserve=0, emg=""):
    t = np.arange(0.5, 2.1, 0.01)
    lines = ["time,SOL", *(f"{x:.2f},{0.3 + 0.2 * np.sin(5 * x):.6f}" for x in t)]
    (folder / "emg.csv").write_text("\n".join(lines) + "\n")
    text = STUDY.format(reserve=reserve, emg=emg, file="emg: emg.csv" if emg else "", designs=designs)
    (folder / "study.yaml").write_text(text)
    chapter = muscle_sharing(designopt.load(folder / "study.yaml").run(folder / "mini.study"))
    assert chapter is not None
    return chapter


def figure(chapter, title):
    (match,) = [f for f in chapter.figures if f.title == title]
    return match


def test_balanced_designs_have_a_sentence_and_no_empty_plot(tmp_path):
    chapter = section(tmp_path, STRONG)
    titles = [f.title for f in chapter.figures]
    assert "Frames beyond the muscles" not in titles
    assert "Reserves" not in titles
    assert "every frame is balanced by the muscles" in chapter.introduction
    assert titles == ["Activations", *[f"Balance about {n}_{w}" for n, w in
                      (("hip", "flexion"), ("knee", "angle"), ("ankle", "angle"))],
                      "Feasibility margin", "Fibre lengths"]  # fmt: skip


def test_frames_beyond_the_muscles_are_on_the_time_axis_with_what_they_lack(tmp_path):
    chapter = section(tmp_path, f"{STRONG}, {WEAK}")
    assert "balanced" not in chapter.introduction
    short = figure(chapter, "Frames beyond the muscles")
    names = [trace.get("name", "") for trace in short.plot["data"]]
    assert {"missing about ankle_angle", "sufficient strength", "infeasible", "optimal"} <= set(names)
    assert not short.variants  # the strong leg has none: it is not offered
    (table,) = chapter.tables
    rows = {row[:3]: row for row in table.rows}
    weak = rows["weak", "trial", "infeasible"]
    assert "ankle_angle" in weak[5]
    assert "strength x 1." in weak[5]
    assert ("strong", "trial", "infeasible") not in rows
    assert "no activations balance the moments" in table.note


def test_the_margin_of_every_frame_is_on_the_time_axis_with_the_edge(tmp_path):
    margin = figure(section(tmp_path, f"{STRONG}, {WEAK}"), "Feasibility margin")
    strong, weak = (plot["data"] for plot in margin.variants.values())
    assert min(strong[0]["y"]) > 0.0
    assert [trace.get("name") for trace in strong] == ["margin", "edge"]
    assert [trace.get("name") for trace in weak] == ["margin", "beyond the muscles", "edge"]
    short = np.asarray(weak[0]["y"]) < 0.0
    np.testing.assert_allclose(weak[1]["y"], np.asarray(weak[0]["y"])[short], atol=1e-5)
    np.testing.assert_allclose(2.0 * (1.0 - np.asarray(strong[0]["y"])), 1.0 - np.asarray(weak[0]["y"]), atol=1e-4)


def test_frames_that_no_strength_balances_are_drawn_at_the_lower_edge():
    arrays = {"time": np.arange(4.0), "margin": np.array([0.5, -2.0, -np.inf, np.nan])}
    traces = margin_figure({("a", "b"): arrays}).plot["data"]
    assert traces[0]["y"] == pytest.approx([0.5, -2.0, -2.0, np.nan], nan_ok=True)
    assert traces[1]["y"] == pytest.approx([-2.0, -2.0])
    worst = margin_figure({("a", "b"): {**arrays, "margin": np.array([0.5, 0.2, -np.inf, -30.0])}})
    assert worst.plot["data"][0]["y"] == pytest.approx([0.5, 0.2, -10.0, -10.0])


def test_forces_in_joints_are_drawn_where_the_settings_name_joints(tmp_path):
    study = designopt.load(STUDIES / "elbow_load.yaml", overrides=("solver.designs=[{name: alone}]",))
    result = study.run(tmp_path / "load.study")
    chapter = muscle_sharing(result)
    assert chapter is not None
    (trace,) = figure(chapter, "Joint reactions").plot["data"]
    components = figure(chapter, "Components of a joint reaction").plot["data"]
    assert (trace["name"], [component["name"] for component in components]) == ("elbow", ["x", "y", "z"])
    size, parts = np.asarray(trace["y"]), [np.asarray(component["y"]) for component in components]
    np.testing.assert_allclose(size, np.sqrt(sum(part**2 for part in parts)), rtol=2e-3)
    steady, tense = result.outcomes.figures["peak_reaction"][0]
    assert size.max() == pytest.approx(steady, rel=1e-4)
    peaks = next(table for table in chapter.tables if table.title == "Peaks of joint forces")
    assert [row[2:4] for row in peaks.rows] == [("elbow", pytest.approx(peak)) for peak in (steady, tense)]
    assert "in elbow at" in chapter.findings[0]
    assert tense > 1.3 * steady  # what the triceps does, the flexors undo: the joint carries both
    assert "Dotted" in figure(chapter, "Activations").note


def test_selectors_have_the_names_that_the_study_gives_its_designs(tmp_path):
    chapter = section(tmp_path, f"{STRONG}, {WEAK}")
    assert figure(chapter, "Activations").choices[0].options == ("strong", "weak")


def test_measured_activity_is_dotted_beside_its_muscle(tmp_path):
    chapter = section(tmp_path, STRONG, emg="emg: {track: {soleus: SOL}, weight: 0.5}")
    activations = figure(chapter, "Activations")
    dotted = [trace for trace in activations.plot["data"] if trace["line"].get("dash") == "dot"]
    assert [trace["legendgroup"] for trace in dotted] == ["soleus"]
    assert activations.plot["data"][1]["name"] == "soleus" or activations.plot["data"][0]["name"] == "soleus"
    assert "Dotted" in activations.note


def test_reserves_are_drawn_by_the_size_that_marks_a_frame(tmp_path):
    chapter = section(tmp_path, WEAK, reserve=20)
    traces = figure(chapter, "Reserves").plot["data"]
    assert traces[-1]["name"] == "marked above"
    assert traces[-1]["y"] == pytest.approx([1.0, 1.0])
    assert max(np.nanmax(trace["y"]) for trace in traces[:-1]) > 1.0
    (table,) = chapter.tables
    assert any(row[2] == "reserve active" for row in table.rows)


def test_notes_on_the_trial_are_reported(tmp_path):
    chapter = section(tmp_path, STRONG)
    assert any("rotations are assumed to be in radians" in note for note in chapter.notes)


def test_trials_without_muscle_forces_have_no_part(monkeypatch):
    nothing = dict.fromkeys(("time", "muscles", "activations", "fibre_lengths"), np.zeros((0, 0)))
    monkeypatch.setattr("designopt_muscle.report.sharing.stored_arrays", lambda *_: {("usual", "walk"): nothing})
    assert muscle_sharing(SimpleNamespace()) is None


def test_areas_of_a_balance_end_with_the_last_frame_that_has_a_solution() -> None:
    moments = np.array([[[1.0, 2.0]], [[1.0, 2.0]], [[np.nan, np.nan]]])
    arrays = {
        "time": np.array([0.0, 0.1, 0.2]),
        "muscle_moments": moments,
        "muscles": np.array(["short", "long"]),
        "reserves": np.zeros((3, 1)),
        "net_moments": np.full((3, 1), 3.0),
        "coordinates": np.array(["elbow_flexion"]),
    }
    *areas, needed = _balance(arrays, row=0, highlights=("long", "short"))["data"]
    assert [list(area["x"]) for area in areas] == [[0.0, 0.1], [0.0, 0.1]]
    assert len(needed["x"]) == 3


def test_a_muscle_has_one_colour_in_all_designs() -> None:
    def arrays(activations: list[float]) -> dict[str, np.ndarray]:
        return {"time": np.zeros(1), "muscles": np.array(["short", "long"]), "activations": np.array([activations])}

    motions = {("squares", "walk"): arrays([0.1, 0.4]), ("maximum", "walk"): arrays([0.3, 0.2])}
    named = named_muscles(motions, "activations")
    assert named == ("long", "short")
    colours = [{name: style["color"] for _, name, style in drawn_muscles(some, named)} for some in motions.values()]
    assert colours[0] == colours[1]
    assert len(set(colours[0].values())) == 2


def test_both_sides_of_a_joint_have_its_colour_and_each_joint_its_own() -> None:
    joints = [f"{name}_{side}" for name in "abcdefghi" for side in "rl"]
    forces = np.zeros((2, len(joints), 3))
    forces[:, :, 1] = -np.arange(len(joints), 0, -1.0)
    arrays = {"time": np.array([0.0, 1.0]), "joints": np.array(joints), "reactions": forces}
    chapter = reaction_parts({("alone", "walk"): arrays})
    lines = {trace["name"]: trace["line"] for trace in chapter.figures[0].plot["data"]}
    assert len({style["color"] for style in lines.values()}) == len(lines) / 2 == 8
    assert lines["a_r"]["color"] == lines["a_l"]["color"]
    assert [name for name, style in lines.items() if "dash" in style] == [name for name in lines if name[-1] == "l"]
    assert "not drawn: i_r and i_l" in chapter.figures[0].note
