"""What is on record can be judged by other objectives and limits, without a simulation."""

import shutil
from typing import Annotated, TypedDict

import numpy as np
import pytest

import designopt
from designopt import Quantity as Q
from designopt.plugin import Plugin, PluginError, find
from designopt.store.errors import StoreError
from designopt.store.result import Result
from designopt.study.language.errors import StudyError


class Design(TypedDict):
    width: Annotated[float, Q("m", "width")]


class Given(TypedDict):
    wear: Annotated[float, Q("mm", "wear")]
    heat: Annotated[float, Q("W", "heat")]


class Ground(TypedDict, total=False):
    load: Annotated[float, Q("N", "load")]


@designopt.model("rejudged", version=1)
def rejudged(design: Design, scenario: Ground) -> Given:
    """Wear falls with the width, heat grows with it."""
    load = scenario.get("load", 1.0)
    return {"wear": load / design["width"], "heat": design["width"] * (1.0 + load)}


@designopt.objective("rejudged_sum", version=1)
def rejudged_sum(wear, heat, *, factor: float = 1.0) -> Annotated[float, Q("", "sum")]:
    """Both at once."""
    return wear + factor * heat


@designopt.objective("rejudged_other", version=1)
def rejudged_other(wear) -> Annotated[float, Q("", "never recorded")]:
    """Not on record."""
    return float(wear)


SECTIONS = {
    "study": "rejudged",
    "model": {"use": "rejudged"},
    "scenarios": [{"name": "light", "load": 1.0}, {"name": "heavy", "load": 9.0}],
    "space": {"width": [0.5, 4.0]},
    "figures": {"both": {"use": "rejudged_sum", "factor": 2.0}},
    "objectives": [{"name": "wear", "minimize": "wear", "over": "worst"}, {"name": "heat", "minimize": "heat"}],
    "constraints": [{"name": "cool", "of": "heat", "max": 1e3}],
    "solver": {"use": "sobol", "samples": 16},
    "execution": {"executor": "serial"},
    "report": {"validate": {"scenarios": [{"name": "odd", "load": 4.0}], "quantiles": [0.5]}},
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rejudge") / "s"
    designopt.define(**SECTIONS).run(folder)
    return folder


def test_another_aggregation_gives_what_a_run_with_it_would_have(path, tmp_path):
    changed = Result.open(path).with_changes(["objectives.wear.over=mean"])
    width = changed.outcomes.X[:, 0]
    assert changed.outcomes.objectives[:, 0] == pytest.approx(np.mean([1.0, 9.0]) / width, rel=1e-12)
    objectives = [{"name": "wear", "minimize": "wear", "over": "mean"}, SECTIONS["objectives"][1]]
    fresh = designopt.define(**{**SECTIONS, "objectives": objectives}).run(tmp_path / "fresh")
    assert changed.outcomes.objectives.tolist() == fresh.outcomes.objectives.tolist()
    assert changed.front().tolist() == fresh.front().tolist()
    assert changed.chosen() == fresh.chosen()
    assert changed.problem.digest == fresh.problem.digest


def test_limits_objectives_and_figures_on_record_can_change(path):
    result = Result.open(path)
    assert result.outcomes.feasible.all()
    changed = result.with_changes(
        ["constraints.cool.max=20", "objectives.1={name: sum, maximize: both, over: nominal}"]
    )
    width = changed.outcomes.X[:, 0]
    assert changed.outcomes.feasible.tolist() == (width * 10.0 <= 20.0).tolist()
    feasible = changed.outcomes.feasible
    total = 1.0 / width + 2.0 * width * 2.0
    assert changed.outcomes.objectives[feasible, 1] == pytest.approx(-total[feasible], rel=1e-12)
    rejudged = changed.with_changes(["constraints.cool.max=30"])
    assert rejudged.problem.objectives[1].name == "sum"
    assert rejudged.outcomes.feasible.sum() > changed.outcomes.feasible.sum()


def test_arrays_read_from_the_store_do_not_change(path):
    result = Result.open(path)
    changed = result.with_changes(["title=Hot", "objectives.wear.minimize=2*wear"])
    assert changed.study.title == "Hot"
    assert changed.status.tolist() == result.status.tolist()
    assert changed.designs_of("sobol").tolist() == result.designs_of("sobol").tolist()
    assert changed.message(3, 1) == ""
    assert changed.sessions == result.sessions
    assert changed.study.stages == result.study.stages
    best = changed.chosen()["best wear"]
    assert changed.outcomes.objectives[best, 0] == 2.0 * result.outcomes.objectives[best, 0]
    assert changed.validation().objectives[:, 0, 0].tolist() == pytest.approx(
        (8.0 / changed.outcomes.X[changed.validation().rows, 0]).tolist()
    )
    assert result.with_changes(["report.validate.quantiles=[0.1, 0.9]"]).validation().quantiles.shape[2] == 2


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ("space.width.high=9", "space"),
        ("model.use=other", "model"),
        ("scenarios.0.load=2", "scenarios"),
        ("seed=3", "seed"),
        ("budget.evaluations=99", "budget"),
        ("solver.samples=32", "solver"),
        ("relations=[width <= 2]", "relations"),
        ("execution.workers=3", "execution"),
        ("report.validate.scenarios.0.load=5", "report.validate.scenarios"),
    ],
)
def test_outputs_that_need_a_simulation_are_refused_by_name(path, change, key):
    with pytest.raises(StoreError, match=rf"'{key}' determines what is computed .* start_from: {{store: "):
        Result.open(path).with_changes([change])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("objectives.0.minimize=rejudged_other", "figure 'rejudged_other' was not recorded .on record: both; "),
        ("figures.both.factor=3", "figure 'both' was not recorded with these settings"),
    ],
)
def test_a_figure_that_is_not_on_record_is_refused_by_name(path, change, words):
    with pytest.raises(StoreError, match=words):
        Result.open(path).with_changes([change])


def test_mistakes_are_reported_as_in_a_study_file(path):
    with pytest.raises(StudyError, match="there is no element named 'waer'; did you mean 'wear'"):
        Result.open(path).with_changes(["objectives.waer.over=mean"])
    with pytest.raises(StudyError, match="key=value"):
        Result.open(path).with_changes(["title"])


def test_a_figure_of_an_undeclared_model_that_nobody_recorded_is_refused(tmp_path):
    @designopt.model("rejudged_open", version=1, unchecked=True)
    def rejudged_open(design, scenario):
        return {"seen": design["a"]}

    study = designopt.define(
        study="open", model={"use": "rejudged_open"}, space={"a": [0.0, 1.0]}, execution={"executor": "serial"},
        objectives=[{"name": "seen", "minimize": "seen"}], solver={"use": "sobol", "samples": 4},
    )  # fmt: skip
    result = study.run(tmp_path / "s")
    with pytest.raises(StoreError, match="'seen' needs 'unseen', which was not recorded; on record: seen"):
        result.with_changes(["objectives.0.minimize=unseen"])


def test_a_study_that_starts_from_a_store_can_be_judged_anew_when_that_store_is_gone(path, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    shutil.copytree(path, first)
    sections = {k: v for k, v in SECTIONS.items() if k != "solver"}
    stage = {"name": "more", "solver": {"use": "nsga2", "population": 4}, "budget": {"evaluations": 12},
             "start_from": {"store": "first"}}  # fmt: skip
    designopt.define(base=tmp_path, **sections, stages=[stage]).run(second)
    shutil.rmtree(first)
    result = Result.open(second)
    changed = result.with_changes(["objectives.wear.over=mean"]).with_changes(["title=Anew"])
    assert (changed.study.title, changed.problem.objectives[0].over.plugin.name) == ("Anew", "mean")
    assert changed.study.stages == result.study.stages


def test_so_can_one_whose_model_gave_derivatives(tmp_path):
    @designopt.model("rejudged_slope", version=1)
    class Slope:
        def evaluate(self, design: Design, scenario) -> Given:
            return {"wear": (design["width"] - 1.0) ** 2, "heat": design["width"]}

        def gradient(self, design, scenario):
            return {"wear": {"width": 2.0 * (design["width"] - 1.0)}}

    sections = {
        **{key: SECTIONS[key] for key in ("study", "space", "execution")},
        "model": {"use": Slope},
        "objectives": [{"name": "wear", "minimize": "wear"}],
        "base": tmp_path,
    }
    first = designopt.define(**sections, solver={"use": "sobol", "samples": 4}).run(tmp_path / "first")
    stage = {"name": "descent", "solver": {"use": "slsqp"}, "start_from": {"store": str(first.path), "best": 1}}
    result = designopt.define(**sections, stages=[stage]).run(tmp_path / "second")
    assert result.problem.gradients
    changed = result.with_changes(["objectives.0.minimize=heat"])
    assert changed.front().tolist() == [int(np.argmin(result.outcomes.figures["heat"]))]


def test_input_files_come_from_the_store(tmp_path):
    @designopt.model("rejudged_table", version=1)
    class RejudgedTable:
        """Reads a table."""

        table: designopt.InputFile

        def evaluate(self, design: Design, scenario) -> Given:
            return {"wear": float(self.table.text()), "heat": design["width"]}

    (tmp_path / "data").mkdir()
    file = tmp_path / "data" / "wear.txt"
    file.write_text("3.5")
    study = designopt.define(
        base=tmp_path, study="table", model={"use": "rejudged_table", "table": "data/wear.txt"},
        space={"width": [0.5, 1.0]}, objectives=[{"name": "wear", "minimize": "wear"}],
        solver={"use": "sobol", "samples": 2}, execution={"executor": "serial"},
    )  # fmt: skip
    result = study.run(tmp_path / "s")
    file.unlink()
    assert (result.with_changes(["objectives.0.minimize=2*wear"]).outcomes.objectives == 7.0).all()


def test_a_store_whose_file_was_tampered_with_is_not_judged_anew(path, tmp_path):
    copy = tmp_path / "s"
    shutil.copytree(path, copy)
    file = copy / "study.yaml"
    file.write_text(file.read_text().replace("0.5,", "0.25,", 1))
    with pytest.raises(StoreError, match=r"study.yaml differs from the problem that was run"):
        Result.open(copy).with_changes(["title=x"])
    file.unlink()
    with pytest.raises(StoreError, match=r"has no study.yaml"):
        Result.open(copy).with_changes(["title=x"])


def test_plugins_that_are_not_here_are_named(path, monkeypatch):
    real = find

    def without_model(kind, name):
        if name == "rejudged":
            raise PluginError("no plugin named 'rejudged'")
        return real(kind, name)

    monkeypatch.setattr("designopt.store.archive.find", without_model)
    result = Result.open(path)
    assert isinstance(result.study.model.plugin, Plugin)
    monkeypatch.setattr("designopt.study.sections.context.find", without_model)
    with pytest.raises(StudyError, match="no plugin named 'rejudged'"):
        result.with_changes(["title=x"])
