"""A study that is run again, unchanged or edited, over the store of its first run."""

from pathlib import Path

import pytest
from command import designopt

from designopt import define, load, open_store
from designopt.report.comparison.study_edit import StudyEdit
from designopt.report.parts.answer.better_designs import better_in_other_stores
from designopt.store.errors import StoreError

MODEL = '''
from pathlib import Path
from typing import Annotated, TypedDict
from designopt import Quantity as Q, model

class Out(TypedDict):
    mass: Annotated[float, Q("kg", "mass of the plate")]
    sag: Annotated[float, Q("mm", "deflection of its end")]

@model("plate", version=1)
def plate(design, scenario, *, load: Annotated[float, Q("N", "force on its end", gt=0)] = 100.0) -> Out:
    """A clamped plate of steel."""
    with open("evaluations.txt", "a") as file:
        file.write("1")
    t = design["t"]
    return {"mass": 0.8 * t, "sag": load * 5.0 / t**3}
'''
STUDY = """\
study: plate
model: {use: plate}
space: {t: [2, 8]}
objectives: [{minimize: mass}]
constraints: [{of: sag, max: 20 mm}]
solver: {use: full_factorial, levels: 13}
execution: {executor: serial}
"""
PLUGIN = ("--plugin", "plate.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plate.py").write_text(MODEL)
    (tmp_path / "plate.yaml").write_text(STUDY)
    completed = designopt(tmp_path, "run", "plate.yaml", *PLUGIN)
    assert completed.returncode == 0, completed.stderr
    assert computed(tmp_path) == 13
    return tmp_path


def computed(folder: Path) -> int:
    """Number of evaluations that the model has carried out."""
    return len((folder / "evaluations.txt").read_text())


def edit(folder: Path, before: str, after: str) -> None:
    text = (folder / "plate.yaml").read_text()
    assert before in text
    (folder / "plate.yaml").write_text(text.replace(before, after))


def test_an_unchanged_study_is_continued_and_nothing_is_computed_again(folder):
    repeated = designopt(folder, "run", "plate.yaml", *PLUGIN)
    assert repeated.returncode == 0, repeated.stderr
    assert "nothing to do: the run is complete" in repeated.stderr
    assert computed(folder) == 13


def test_a_larger_budget_in_the_file_continues_and_one_that_was_exceeded_stays(folder):
    edit(folder, "full_factorial, levels: 13}", "genetic, population: 4}\nbudget: {evaluations: 8}")
    run = ("run", "plate.yaml", "-o", "search.study", *PLUGIN)
    assert designopt(folder, *run).returncode == 0
    edit(folder, "evaluations: 8", "evaluations: 16")
    completed = designopt(folder, *run)
    assert completed.returncode == 0, completed.stderr
    assert open_store(folder / "search.study").counts["designs"] > 8
    edit(folder, "evaluations: 16", "evaluations: 8")
    before = computed(folder)
    less = designopt(folder, *run)
    assert less.returncode == 0, less.stderr
    assert "nothing to do" in less.stderr
    assert computed(folder) == before


def test_another_title_or_report_is_no_other_question(folder):
    edit(folder, "study: plate", "study: plate\ntitle: The same plate\nreport: {plots: [best]}")
    repeated = designopt(folder, "run", "plate.yaml", *PLUGIN)
    assert repeated.returncode == 0, repeated.stderr
    assert computed(folder) == 13
    assert "The same plate" in (folder / "results/plate.study/report.html").read_text()


def test_a_changed_bound_is_shown_with_the_ways_to_go_on(folder):
    edit(folder, "[2, 8]", "[4, 10]")
    repeated = designopt(folder, "run", "plate.yaml", *PLUGIN)
    assert repeated.returncode == 4
    lines = repeated.stderr.splitlines()
    assert lines[0] == "results/plate.study exists, and plate.yaml differs from the study of its run:"
    assert lines[1] == "  t 4 … 10 instead of 2 … 8"
    assert "--rescore" not in repeated.stderr
    assert any(
        line.startswith("  --beside")
        and "results/plate.2.study; takes over evaluations with the same keys: up to 9 of 13, of those that the stages "
        "propose again: another space moves the points of a grid or a sample"
        in line
        for line in lines
    )
    assert any(line.startswith("  --replace") for line in lines)
    assert computed(folder) == 13


def test_the_ways_count_the_evaluations_as_the_summary_does_without_neighbours_and_with_failures(folder):
    (folder / "plate.py").write_text(
        MODEL.replace("    return {", "    assert not 5.2 < t < 5.8, 'licence'\n    return {")
    )
    edit(folder, "executor: serial", "executor: serial, on_failure: {error: infeasible}")
    edit(folder, "[2, 8]", "{low: 2, high: 8, tolerance: 0.05}")
    run = ("run", "plate.yaml", "-o", "s.study", *PLUGIN)
    completed = designopt(folder, *run)
    assert "note: 7.69 % of 13 evaluations failed" in completed.stdout
    assert "16 of 16" in completed.stdout
    edit(folder, "max: 20 mm", "max: 21 mm")
    edited = designopt(folder, *run)
    assert "--rescore  score its 13 evaluations by the edited objectives" in edited.stderr
    assert "with the same keys: up to 12 of 13; 1 failed one is computed again\n" in edited.stderr


def test_a_renamed_parameter_is_another_question_without_anything_to_take_over(folder):
    edit(folder, "space: {t: [2, 8]}", "space: {thickness: [2, 8]}")
    (folder / "plate.py").write_text(MODEL.replace('design["t"]', 'design["thickness"]'))
    repeated = designopt(folder, "run", "plate.yaml", *PLUGIN)
    assert repeated.returncode == 4
    assert "parameter thickness (2 … 8) added" in repeated.stderr
    assert "parameter t left out" in repeated.stderr
    assert "nothing can be taken over" in repeated.stderr
    assert computed(folder) == 13


@pytest.mark.parametrize(
    ("before", "after", "warned"),
    [
        ("\n@model", "\nSCALE = 2.0\n\n@model", True),  # a constant beside the model, as a function that it calls
        ("\n@model", "\n# a comment\n\n@model", False),
    ],
)
def test_a_plugin_file_that_changes_around_its_model_is_named(folder, before, after, warned):
    (folder / "plate.py").write_text(MODEL.replace(before, after))
    repeated = designopt(folder, "run", "plate.yaml", *PLUGIN)
    assert repeated.returncode == 0, repeated.stderr
    text = "the file plate.py has changed outside of the code of its plugins"
    assert (text in repeated.stderr, text in repeated.stdout) == (warned, warned)
    assert computed(folder) == 13


def test_a_search_beside_says_that_only_designs_proposed_again_are_taken_over_and_how_to_begin_from_the_others(folder):
    edit(folder, "solver: {use: full_factorial, levels: 13}", "")
    search = """
stages:
  - name: search
    solver: {use: genetic, population: 4}
    budget: {evaluations: 8}
"""
    edit(folder, "execution:", f"{search}\nexecution:")
    beside = designopt(folder, "run", "plate.yaml", "--beside", *PLUGIN)
    assert beside.returncode == 0, beside.stderr
    way = "start_from: {store: results/plate.study} in a stage"
    assert f"takes over only designs that the search proposes again; to begin from the others: {way}" in beside.stderr
    edit(folder, "max: 20 mm", "max: 21 mm")
    edit(folder, "    budget:", "    start_from: {store: results/plate.study}\n    budget:")
    from_others = designopt(folder, "run", "plate.yaml", "--beside", *PLUGIN)
    assert from_others.returncode == 0, from_others.stderr
    assert "proposes again" not in from_others.stderr
    elsewhere = designopt(folder, "run", "plate.yaml", "-o", "s.study", *PLUGIN)
    assert elsewhere.returncode == 0, elsewhere.stderr
    assert "proposes again" not in elsewhere.stderr


def test_a_run_beside_takes_over_evaluations_with_the_same_keys_and_counts_them(folder):
    edit(folder, "[2, 8]", "[4, 10]")
    beside = designopt(folder, "run", "plate.yaml", "--beside", *PLUGIN)
    assert beside.returncode == 0, beside.stderr
    assert f"9 evaluations taken over from {folder / 'results/plate.study'}" in beside.stderr
    assert "proposes again" not in beside.stderr
    assert computed(folder) == 13 + 4
    result = open_store(folder / "results/plate.2.study")
    assert len(result.outcomes) == 13
    assert any(event["kind"] == "recalled" for event in result.events)
    for options in ([], ["--beside"]):  # the store that has this question is continued
        continued = designopt(folder, "run", "plate.yaml", *options, *PLUGIN)
        assert continued.returncode == 0, continued.stderr
        assert "continuing results/plate.2.study, beside results/plate.study" in continued.stderr
    assert computed(folder) == 13 + 4
    edit(folder, "levels: 13", "levels: 25")
    third = designopt(folder, "run", "plate.yaml", "--beside", *PLUGIN)
    assert third.returncode == 0, third.stderr
    assert computed(folder) == 13 + 4 + 12
    assert (folder / "results/plate.3.study/report.html").exists()
    edit(folder, "levels: 25", "levels: 7")
    fourth = designopt(folder, "run", "plate.yaml", "-o", "results/plate.3.study", "--beside", *PLUGIN)
    assert "new store results/plate.4.study, beside results/plate.3.study" in fourth.stderr


def test_a_number_in_the_name_of_a_store_without_one_before_it_is_no_count(tmp_path):
    version = StudyEdit(None, tmp_path / "frame 1.3.study")
    assert version.beside == tmp_path / "frame 1.3.2.study"
    (tmp_path / "frame 1.study").mkdir()
    (tmp_path / "frame 1.study" / "journal.db").touch()
    assert StudyEdit(None, version.store).beside == tmp_path / "frame 1.4.study"


@pytest.mark.parametrize(("levels", "note"), [("3", True), ("5", False)])
def test_a_design_of_the_first_run_that_is_better_than_those_of_a_run_beside_is_named(folder, levels, note):
    edit(folder, "[2, 8]", "[2.8, 6]" if note else "[3, 7]")  # the second grid has the best feasible design, 3 mm
    edit(folder, "levels: 13", f"levels: {levels}")
    beside = designopt(folder, "run", "plate.yaml", "--beside", *PLUGIN)
    assert beside.returncode == 0, beside.stderr
    better = "results/plate.study/2 is better: mass 2.4 kg, within the same bounds and limits"
    assert (f"note: {better}" in beside.stdout) == note
    assert (better in (folder / "results/plate.2.study/report.html").read_text()) == note
    for command in ("show", "resume"):
        assert (f"note: {better}" in designopt(folder, command, "results/plate.2.study", *PLUGIN).stdout) == note
    (folder / "results").rename(folder / "archive")
    moved = designopt(folder, "show", "archive/plate.2.study", *PLUGIN).stdout
    assert ("note: archive/plate.study/2 is better" in moved) == note


def decades(x):
    return {"height": 10.0**x}


def listed_decades(path, xs, recall=()):
    study = define(
        study="decades",
        model=decades,
        space={"x": [0, 4]},
        objectives=[{"minimize": "height"}],
        solver={"use": "evaluate", "designs": [{"name": f"d{i}", "x": x} for i, x in enumerate(xs)]},
        execution={"executor": "serial"},
    )
    return study.run(path, recall=recall)


def test_a_better_design_is_named_by_its_gain_beside_the_best_value_not_beside_the_range_of_all_designs(tmp_path):
    """Of an objective over four decades a gain of 2 % is small beside the range."""
    first = listed_decades(tmp_path / "first", [0.3, 4.0])
    second = listed_decades(tmp_path / "second", [0.31, 4.0], recall=[first.path])
    (clause,) = better_in_other_stores(second)
    assert clause.startswith(f"{first.path}/0 is better: height 1.995")
    equal = listed_decades(tmp_path / "equal", [0.3 + 1e-5, 4.0], recall=[first.path])  # 0.002 %
    assert better_in_other_stores(equal) == []


def test_designs_of_another_store_that_would_enter_a_front_are_counted_without_those_that_they_dominate(tmp_path):
    def tilted(x, y):
        return {"height": x + y, "depth": 1.0 - x + y}

    def run(name, low, designs, recall=(), **more):
        study = define(
            study="tilted",
            model=tilted,
            space={"x": [low, 1], "y": [0, 1]},
            objectives=[{"minimize": "height"}, {"minimize": "depth"}],
            solver={"use": "evaluate", "designs": [{"name": f"d{x}{y}", "x": x, "y": y} for x, y in designs]},
            execution={"executor": "serial"},
            **more,
        )
        return study.run(tmp_path / name, recall=recall)

    earlier = run("earlier", 0.0, [(0.1, 0.0), (0.4, 0.0), (0.4, 0.1), (0.8, 0.0), (0.8, 0.5)])
    (clause,) = better_in_other_stores(run("later", 0.3, [(0.6, 0.3)], recall=[earlier.path]))
    assert clause.startswith(f"2 designs of {earlier.path} would enter the front, {earlier.path}/1 among them")
    without = run("none", 0.3, [(0.6, 0.3)], recall=[earlier.path], constraints=[{"of": "height", "max": 0.1}])
    assert better_in_other_stores(without) == []  # no design of either store is feasible


def test_other_limits_are_answered_from_the_recorded_evaluations(folder):
    edit(folder, "max: 20 mm", "max: 10 mm")
    repeated = designopt(folder, "run", "plate.yaml", *PLUGIN)
    assert repeated.returncode == 4
    assert "--rescore" in repeated.stderr
    assert "limit sag is" in repeated.stderr
    scored = designopt(folder, "run", "plate.yaml", "--rescore", *PLUGIN)
    assert scored.returncode == 0, scored.stderr
    assert "note: no design was searched for the edited question" in scored.stdout
    assert computed(folder) == 13
    page = (folder / "results/plate.study/report-set.html").read_text()
    assert "Re-scored with changes: limit sag is" in page
    edit(folder, "max: 10 mm", "max: 0.001 mm")
    nothing = designopt(folder, "run", "plate.yaml", "--rescore", *PLUGIN)
    assert nothing.returncode == 1
    assert "no design satisfies the present limits" in nothing.stderr


def test_a_changed_model_cannot_be_re_scored(folder):
    edit(folder, "{use: plate}", "{use: plate, load: 50 N}")
    scored = designopt(folder, "run", "plate.yaml", "--rescore", *PLUGIN)
    assert scored.returncode == 4
    assert "its model, space or scenarios differ" in scored.stderr
    assert "--beside" in scored.stderr
    repeated = designopt(folder, "run", "plate.yaml", *PLUGIN)
    assert "model with load 50 N instead of 100 N" in repeated.stderr
    assert "nothing can be taken over" in repeated.stderr


def test_a_replaced_store_is_deleted_once_the_new_run_has_begun(folder):
    (folder / "results/plate.study/notes.txt").write_text("of the first run")
    edit(folder, "[2, 8]", "[4, 10]")
    replaced = designopt(folder, "run", "plate.yaml", "--replace", *PLUGIN)
    assert replaced.returncode == 0, replaced.stderr
    assert computed(folder) == 26
    assert open_store(folder / "results/plate.study").study.space[0].low == 4.0
    assert [path.name for path in (folder / "results").iterdir()] == ["plate.study"]


def test_a_store_is_put_back_when_the_run_that_replaces_it_cannot_begin(folder):
    before = sorted(path.name for path in (folder / "results/plate.study").iterdir())
    refused = designopt(folder, "run", "plate.yaml", "--replace", "--budget", "nowhere=3", *PLUGIN)
    assert refused.returncode == 2
    assert sorted(path.name for path in (folder / "results/plate.study").iterdir()) == before
    edit(folder, "use: plate}", "use: plate, load: -1 N}")
    assert designopt(folder, "run", "plate.yaml", "--replace", *PLUGIN).returncode == 2
    assert len(open_store(folder / "results/plate.study").outcomes) == 13


def test_the_same_is_available_in_python(folder, monkeypatch):
    monkeypatch.chdir(folder)
    plugins = ["plate.py"]
    study = load("plate.yaml", plugin_files=plugins)
    assert study.differences() == []
    edit(folder, "max: 20 mm", "max: 10 mm")
    edited = load("plate.yaml", plugin_files=plugins)
    assert len(edited.differences()) == 1
    assert edited.rescore().outcomes.feasible.sum() < open_store("results/plate.study").outcomes.feasible.sum()
    with pytest.raises(StoreError, match="recall="):
        edited.run()
    beside = edited.run("results/other.study", recall=["results/plate.study"])
    assert len(beside.outcomes) == 13
    assert computed(folder) == 13
    with pytest.raises(StoreError, match="there is no such folder"):
        edited.run("results/third.study", recall=["results/nowhere.study"])
    assert not Path("results/third.study").exists()
    edited.run(replace=True)
    assert edited.differences() == []


def test_a_run_that_its_failures_ended_is_continued_with_their_number(tmp_path):
    (tmp_path / "plate.py").write_text(MODEL.replace('    t = design["t"]', '    t = design["tt"]'))
    (tmp_path / "plate.yaml").write_text(STUDY)
    assert designopt(tmp_path, "run", "plate.yaml", *PLUGIN).returncode == 3
    failed = sum(open_store(tmp_path / "results/plate.study").failures().values())
    repeated = designopt(tmp_path, "run", "plate.yaml", *PLUGIN)
    sentence = f"continuing results/plate.study, which has {failed} failed evaluations: to compute all again"
    assert sentence in repeated.stderr
    (tmp_path / "plate.py").write_text(MODEL)
    assert "continuing" not in designopt(tmp_path, "run", "plate.yaml", *PLUGIN, "--replace").stderr
