"""`designopt benchmark`: solvers x problems x seeds as a study of studies."""

import csv
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import designopt
from designopt.benchmarking import processes
from designopt.benchmarking import ranks as benchmark_ranks
from designopt.benchmarking.file import read_benchmark
from designopt.benchmarking.page import FIGURES_OF_PARTS, medians_on_page
from designopt.benchmarking.ranks import behind_best, pair_tests, ranks
from designopt.benchmarking.table import (
    MedianTable,
    ScoreSpread,
    as_latex,
    as_markdown,
    failed_runs,
    read_records,
    score_text,
)
from designopt.cli import main
from designopt.report.figure_file import has_browser
from designopt.report.labels import number
from designopt.report.parts.answer.problem import limit_with_unit
from designopt.run.progress import line
from designopt.store.errors import StoreError
from designopt.store.views.table import stated_constraints
from designopt.study.language.errors import StudyError

BUNDLED = Path(__file__).parents[1] / "studies" / "benchmarks" / "two_loops.yaml"
FEW = Path(__file__).parent / "bench" / "few_evaluations"
#: AUC of four variants of C4.5 on 14 data sets: Demsar (2006), table 6. "voting" has a digit more, as its ranks.
DEMSAR = np.array([
    [0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569], [0.954, 0.971, 0.968, 0.967],
    [0.628, 0.661, 0.654, 0.657], [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931],
    [0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625], [0.775, 0.838, 0.866, 0.875],
    [1.0, 1.0, 1.0, 1.0], [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669],
    [0.972, 0.981, 0.9751, 0.975], [0.957, 0.978, 0.946, 0.970],
])  # fmt: skip


def bowl(design):
    x, y = design["x"], design["y"]
    return {"left": (x - 1.0) ** 2 + y**2, "right": (x + 1.0) ** 2 + y**2}


def sections(**more):
    """Two cheap problems, with two objectives and with one."""
    space = {"x": [-3, 3], "y": [-3, 3]}
    common = {"model": bowl, "space": space, "solver": {"use": "random", "samples": 1}}
    two_objectives = designopt.define(study="two", objectives=[{"minimize": "left"}, {"minimize": "right"}], **common)
    one_objective = designopt.define(study="one", objectives=[{"minimize": "left"}], **common)
    solvers = {"nsga2": {"use": "nsga2", "population": 8}, "sobol": {"use": "sobol"}}
    problems = {"two": {"study": two_objectives, "reference": {"left": 10, "right": 10}}, "one": one_objective}
    return {"benchmark": "small", "problems": problems, "solvers": solvers, "seeds": 3, "evaluations": 24, **more}


def test_limits_of_a_problem_have_the_units_of_its_study():
    definition = designopt.load(BUNDLED.parents[1] / "knee_damper.yaml").definition
    texts = [limit_with_unit(c) for c in stated_constraints(definition)]
    assert texts == ["period_n = 1", "floquet_modulus ≤ 0.9", "10 mm ≤ toe_clearance", "50 N ≤ mean_normal_force"]


def _outcomes(result, folder, problem):
    cells = (cell for cell in result.scores.benchmark.cells if cell.problem == problem)
    return [designopt.open_store(cell.store(folder)).outcomes for cell in cells]


def test_every_solver_meets_every_problem_with_every_seed(tmp_path: Path) -> None:
    result = designopt.benchmark(sections(), tmp_path / "small")
    frame = result.to_pandas()
    assert len(frame) == 2 * 2 * 3 * 3  # problems, solvers, seeds, budgets
    assert set(frame.evaluations) == {6, 12, 24}
    assert frame.attrs["units"] == {"search_ms": "ms"}
    stores = [designopt.open_store(tmp_path / "small" / "two" / "sobol" / f"{seed}.study") for seed in range(3)]
    assert [len(store.outcomes) for store in stores] == [24] * 3
    assert not any(np.array_equal(stores[0].outcomes.X, store.outcomes.X) for store in stores[1:])
    # the score is the hypervolume below the reference over that of all runs together
    volumes = {}
    for cell in result.scores.benchmark.cells[:6]:
        volumes[cell.key] = designopt.open_store(cell.store(tmp_path / "small")).hypervolume()
    last = {(r.problem, r.solver, r.seed): r.score for r in result.scores.records if r.evaluations == 24}
    shares = [last[key] / volume for key, volume in volumes.items()]
    assert shares == pytest.approx([shares[0]] * 6)
    assert 0.0 < max(last[key] for key in volumes) <= 1.0
    rows = list(csv.DictReader((tmp_path / "small" / "table.csv").read_text().splitlines()))
    median = np.median([last["one", "sobol", seed] for seed in range(3)])
    (row,) = (r for r in rows if (r["problem"], r["solver"], r["evaluations"]) == ("one", "sobol", "24"))
    assert float(row["median"]) == pytest.approx(median)
    assert "| `two` |" in (tmp_path / "small" / "table.md").read_text()
    latex = (tmp_path / "small" / "table.tex").read_text()
    assert latex.count("\\begin{tabular}") == latex.count("\\bottomrule") == 3
    page = (tmp_path / "small" / "report.html").read_text(encoding="utf-8")
    for title in ("Score over the designs", "Median attainment surfaces", "Average ranks after 24 designs"):
        assert title in page
    assert 'data-paper="results"' in page.partition("<style>")[0]
    assert "data-on-request>" not in page  # all parts are printed
    best = min(r.objectives[:, 0].min() for r in _outcomes(result, tmp_path / "small", "one"))
    assert (
        f"one: score 0 at left {number(result.scores.problems[1].reference[0])}; score 1 at left {number(best)}."
        in page
    )


def test_equal_runs_of_all_seeds_and_a_start_at_the_best_value_are_named(tmp_path: Path) -> None:
    """The simplex starts in the middle of the space, where the best value is."""
    space, solver = {"x": [-1, 3], "y": [-2, 2]}, {"use": "random", "samples": 1}
    centred = designopt.define(study="hit", model=bowl, space=space, objectives=[{"minimize": "left"}], solver=solver)
    problems = {"hit": {"study": centred, "best": 0}}
    stated = sections(solvers={"simplex": {"use": "nelder_mead"}, "chance": {"use": "random"}}, problems=problems)
    relative, equal, at_start = designopt.benchmark(stated, tmp_path / "small").scores.cautions
    assert relative == (
        "The reference point of hit is taken from these runs, so that another solver or seed changes all scores there: "
        "state 'reference'."
    )
    assert equal.startswith("simplex: the runs of all seeds are the same on hit;")
    assert at_start.startswith("simplex: the first design is the best value of hit,")


def test_runs_that_end_early_and_a_best_value_that_cannot_be_are_named(tmp_path: Path) -> None:
    solvers = {"short": {"use": "halton", "samples": 6}, "chance": {"use": "random"}}
    study = {"model": {"use": "bowl"}, "space": {"x": [0, 1], "y": [0, 1]}, "objectives": [{"minimize": "left"}]}
    stated = sections(solvers=solvers, problems={"hit": {"study": study, "best": 50}})
    _, early, beaten = designopt.benchmark(stated, tmp_path / "small").scores.cautions
    assert early.startswith("short: runs have fewer than 24 different designs on hit (6);")
    assert beaten.startswith("hit: the stated best value is not beyond every run")


def test_a_second_call_computes_nothing_and_more_seeds_only_those(tmp_path: Path) -> None:
    first = designopt.benchmark(sections(), tmp_path / "small")
    journals = sorted((tmp_path / "small").rglob("journal.db"))
    before = [path.stat().st_mtime_ns for path in journals]
    extended = designopt.benchmark(sections(seeds=4), tmp_path / "small")
    assert [path.stat().st_mtime_ns for path in journals] == before
    assert len(extended.scores.benchmark.cells) == 16
    assert {r.seed for r in first.scores.records} | {3} == {r.seed for r in extended.scores.records}


def test_a_benchmark_in_place_of_a_store_is_answered_with_its_page_and_a_run(tmp_path: Path) -> None:
    run = tmp_path / "b.benchmark" / "rosen" / "gp" / "0.study"
    run.mkdir(parents=True)
    (tmp_path / "b.benchmark" / "scores.csv").touch()
    ways = "'designopt benchmark FILE --figure convergence.pdf' writes its figures, and each run is a store:"
    with pytest.raises(StoreError, match=rf"of a benchmark, whose page is .*report.html: {ways} {run}$"):
        designopt.open_store(tmp_path / "b.benchmark")


def test_another_solver_under_the_same_name_is_refused_or_replaced(tmp_path: Path) -> None:
    designopt.benchmark(sections(seeds=1), tmp_path / "small")
    edited = sections(seeds=1)
    edited["solvers"] = {**edited["solvers"], "nsga2": {"use": "nsga2", "population": 12}}
    with pytest.raises(StoreError, match=r"two, nsga2, seed 0: .*population 12 instead of 8.*--replace"):
        designopt.benchmark(edited, tmp_path / "small")
    result = designopt.benchmark(edited, tmp_path / "small", replace=True)
    assert not result.scores.incomplete
    assert "nsga2" in designopt.open_store(tmp_path / "small" / "two" / "nsga2" / "0.study").study.text


def test_a_failing_run_is_reported_and_the_others_continue(tmp_path: Path) -> None:
    def fragile(design):
        if design["x"] > -2.0:
            raise ValueError("too far")
        return {"f": 0.0}

    study = designopt.define(
        study="fragile", model=fragile, space={"x": [-1, 1]}, objectives=[{"minimize": "f"}],
        solver={"use": "random", "samples": 1},
    )  # fmt: skip
    problems = {**sections()["problems"], "fragile": study}
    result = designopt.benchmark(sections(problems=problems, seeds=1), tmp_path / "small")
    assert {key[0] for key in result.failures} == {"fragile"}
    assert {r.problem for r in result.scores.records} == {"two", "one"}
    words = failed_runs(result.failures)
    assert re.match(
        r"2 runs failed \(1 of \w+, 1 of \w+\) and are in no table; the first, fragile, \w+, seed 0: ", words
    )
    assert words.endswith("too far")
    assert "2 runs failed" in (tmp_path / "small" / "report.html").read_text(encoding="utf-8")


def test_a_killed_benchmark_continues_and_ends_like_an_uninterrupted_one(tmp_path: Path) -> None:
    plugin = tmp_path / "slow.py"
    plugin.write_text(
        "import time\n\ndef slow(design):\n"
        "    time.sleep(0.01)\n    return {'f': design['x'] ** 2, 'g': (design['x'] - 1) ** 2}\n"
    )
    (tmp_path / "slow.yaml").write_text(
        "study: slow\nmodel: {use: slow}\nspace: {x: [-2, 2]}\nobjectives: [{minimize: f}, {minimize: g}]\n"
        "solver: {use: random, samples: 1}\n"
    )
    (tmp_path / "b.yaml").write_text(
        "benchmark: b\nproblems: {slow: slow.yaml}\n"
        "solvers: {nsga2: {use: nsga2, population: 10}, sobol: {use: sobol}}\nseeds: 2\nevaluations: 40\n"
    )
    command = [sys.executable, "-m", "designopt", "benchmark", "b.yaml", "--plugin", "slow.py", "--workers", "2"]
    process = subprocess.Popen([*command[:-1], "1"], cwd=tmp_path, stderr=subprocess.DEVNULL, start_new_session=True)
    folder = tmp_path / "results" / "b.benchmark"
    while not list(folder.rglob("journal.db")) and process.poll() is None:
        time.sleep(0.02)
    time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (folder / "report.html").exists()
    completed = subprocess.run(
        [*command, "--progress", "json"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert '"completed": 160' in completed.stderr.splitlines()[-1]
    uninterrupted = designopt.benchmark(tmp_path / "b.yaml", tmp_path / "whole", plugin_files=[plugin])
    scores = [row.split(",")[:5] for row in (folder / "scores.csv").read_text().splitlines()[1:]]
    expected = [
        [r.problem, r.solver, str(r.seed), str(r.evaluations), repr(r.score)] for r in uninterrupted.scores.records
    ]
    assert scores == expected


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("use: nsga2,", "use: nsga22,", r"b.yaml:21:16: error: solvers.nsga2: .*did you mean 'nsga2'"),
        ("population: 12", "population: no", r"b.yaml:21:35: error: solvers.nsga2.population: "),
        ("seeds: 3", "seeds: [1, 1]", r"b.yaml:24:\d+: error: seeds: a seed is listed twice"),
        ("budgets: [15, 30]", "budgets: [15, 31]", r"b.yaml:26:15: error: budgets.1: a run has 30 evaluations"),
        ("evaluations: 30", "evaluation: 30", r"b.yaml:25:1: error: unknown key 'evaluation'"),
        ("benchmark_plants.yaml", "benchmark_plant.yaml", r"b.yaml:14:\d+: error: problems.plants: the study "),
        ("{ride: 10.2}", "{rid: 10.2}", r"b.yaml:17:\d+: error: problems.quarter_car.reference: .*'ride'"),
        ("{use: sobol}", "{use: nsga3}", r"nsga3.*\(problem 'quarter_car'\)"),
        ("seeds: 3", "seeds: 3\nrecords: rows.csv", r"b.yaml:25:\d+: error: records: 'rows.csv' cannot be read"),
        ("seeds: 3", "seeds: 0", r"b.yaml:24:\d+: error: seeds: must be at least 1"),
        (
            "benchmark_plants.yaml",
            "own_plant.csv",
            r"b.yaml:14:\d+: error: problems.plants: .*own_plant.csv' is no study",
        ),
        ("benchmark:", "model:", r"b.yaml:\d+:1: error: this is a study: run it with designopt run"),
    ],
)
def test_a_mistake_is_reported_with_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = BUNDLED.read_text().replace("../", f"{BUNDLED.parents[1]}/")
    assert old in text
    (tmp_path / "b.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(StudyError, match=message):
        read_benchmark(tmp_path / "b.yaml")


def test_recorded_scores_join_the_table_and_are_not_computed(tmp_path: Path) -> None:
    rows = [f"two,peer,{seed},24,0.9,12.5" for seed in range(3)] + ["two,sobol,0,24,0.5,"]
    (tmp_path / "rows.csv").write_text("problem,solver,seed,evaluations,score,search_ms\n" + "\n".join(rows) + "\n")
    problems = {"two": sections()["problems"]["two"]}
    stated = sections(problems=problems, records=str(tmp_path / "rows.csv"), budgets=[24])
    result = designopt.benchmark(stated, tmp_path / "small")
    assert result.scores.solvers == ("nsga2", "sobol", "peer")
    assert not (tmp_path / "small" / "two" / "sobol" / "0.study").exists()
    assert sorted(result.scores.values("two", "sobol", 24))[0] == 0.5
    in_file, in_memory = (
        [(score.problem, score.solver, score.seed, score.evaluations, score.score) for score in records]
        for records in (read_records(tmp_path / "small" / "scores.csv"), result.scores.records)
    )
    assert in_file == in_memory  # to the last digit: tables made of them are the same


def test_a_solver_with_fewer_runs_has_their_number_in_every_table() -> None:
    complete, partial = ScoreSpread(8, 0.8, 0.7, 0.9, True, False), ScoreSpread(2, 0.6, 0.5, 0.7, False, True)
    table = MedianTable(100, ("es", "cma"), (("rosen", (complete, partial)),), (1.0, 2.0), 1)
    assert "| **0.800** (0.700–0.900) | *0.600* (0.500–0.700, 2 runs) |" in as_markdown([table])
    assert "\\textbf{0.800} (0.700--0.900) & \\emph{0.600} (0.500--0.700, 2 runs)" in as_latex([table])
    assert medians_on_page(table).rows[0][2].endswith(", 2 runs)")


def test_the_ranks_are_those_of_the_published_example() -> None:
    """Demsar (2006), section 3.2.4: average ranks 3.143, 2.000, 2.893, 1.964, F = 3.69 with 3 and 39 degrees of freedom
    (p = 0.02, without correction for ties), critical difference 1.25; Wilcoxon finds the first pair different."""
    result = ranks(DEMSAR)
    assert result.average == pytest.approx([3.143, 2.0, 2.893, 1.964], abs=5e-4)
    assert 0.01 < result.p < 0.02
    assert result.critical_difference == pytest.approx(1.25, abs=5e-3)
    first = pair_tests(DEMSAR)[0]
    assert (first.won, first.lost) == (2, 10)
    assert first.p < 0.05


@pytest.mark.parametrize(("problems", "p"), [(2, 1 / 6), (3, 0.028), (4, 0.0046), (5, 0.00077)])
def test_with_few_problems_the_test_of_friedman_is_exact(problems: int, p: float) -> None:
    """The same order of three solvers on all problems; the table of Friedman (1937), J. Am. Stat. Assoc. 32, 675."""
    assert ranks(np.tile([3.0, 2.0, 1.0], (problems, 1))).p == pytest.approx(p, rel=0.02)


def test_the_exact_test_of_many_solvers_takes_little_memory() -> None:
    medians = np.tile(np.arange(7.0), (2, 1))
    assert ranks(medians).p == pytest.approx(1.0 / math.factorial(7))


def test_the_exact_test_and_its_approximation_agree_with_many_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    medians = np.random.default_rng(1).random((6, 3)) + np.array([0.0, 0.1, 0.4])
    exact = ranks(medians).p
    monkeypatch.setattr(benchmark_ranks, "PERMUTATIONS", 0)
    assert ranks(medians).p == pytest.approx(exact, rel=0.5, abs=0.02)
    assert ranks(medians).p != exact


def test_scores_near_the_best_show_their_distance_from_it() -> None:
    texts = [score_text(score) for score in (0.25, 0.9991, 1.0 - 2e-7, 1.0 - 3.2e-10, 1.0)]
    assert texts == ["0.250", "0.999", "1−2e−7", "1−3e−10", "1.000"]


def test_a_solver_is_behind_only_if_its_runs_show_it() -> None:
    good, equal, poor = np.arange(5) + 10.0, np.arange(5) + 9.9, np.arange(5) + 0.0
    best, worse = behind_best([equal, good, poor])
    assert best == 1
    assert worse.tolist() == [False, False, True]
    near = np.array([8.0, 9.0, 9.5, 10.5, 11.5])  # 1/36 by chance: enough for one rival, not for one of two (Holm 1979)
    assert behind_best([near, good])[1].tolist() == [True, False]
    assert behind_best([near, good, near - 0.1])[1].tolist() == [False, False, False]
    assert behind_best([np.zeros(3), np.zeros(3)])[0] is None
    assert behind_best([good, np.empty(0)])[0] is None, "a comparison needs two"


@pytest.mark.parametrize(
    ("file", "plugins", "plan"),
    [
        (BUNDLED, [], ["two_loops: 12 runs in results/two_loops.benchmark", "12 not begun"]),
        (FEW / "few_evaluations.yaml", ["problems.py", "peer.py"], ["2160 runs", " in its records"]),
    ],
)
def test_the_plan_counts_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: Path, plugins: list[str], plan: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    options = [text for name in plugins for text in ("--plugin", str(FEW / name))]
    out = CliRunner().invoke(main, ["benchmark", str(file), "--dry-run", *options]).output
    assert all(text in out for text in plan), out


def test_the_page_shows_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[1] / "docs" / "benchmark_files.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"```(\w+)\n(.*?)```", text, flags=re.DOTALL))
    Path("loops.yaml").write_text(blocks["yaml"].replace("studies/", f"{BUNDLED.parents[1]}/"))
    arguments = shlex.split(blocks["sh"].removeprefix("designopt "))
    printed = CliRunner().invoke(main, [*arguments, "--workers", "1", "--progress", "none"]).output
    lines = blocks["text"].splitlines()
    assert [line for line in printed.splitlines() if line in lines] == [line for line in lines if line != "..."]
    exec(blocks["python"], {"__name__": "page"})
    figure = ["--progress", "none", "--figure"]
    refused = CliRunner().invoke(main, [*arguments, *figure, "front.pdf"])
    assert "the page of a benchmark has no figure 'front'; it has ranks, convergence, attainment" in refused.output
    assert "a figure is written as .svg or .pdf" in CliRunner().invoke(main, [*arguments, *figure, "ranks.png"]).output
    if has_browser():
        printed = CliRunner().invoke(main, [*arguments, *figure, "convergence-2.svg"]).output.splitlines()
        assert printed[-2:] == ["convergence-2.svg", "  quarter_car; others of the part: convergence.svg (plants)"]
        assert Path("convergence-2.svg").read_text().startswith("<svg")


def test_each_problem_has_a_figure_of_its_scores_and_of_its_surfaces(tmp_path: Path) -> None:
    scores = designopt.benchmark(sections(seeds=2), tmp_path / "small").scores
    titles = {part: [figure.title for figure in figures(scores)] for part, figures in FIGURES_OF_PARTS.items()}
    assert titles == {
        "ranks": ["Average ranks after 24 designs, over 2 problems"],
        "convergence": ["two", "one"],
        "attainment": ["two"],
    }


@pytest.mark.parametrize(("execution", "executor", "workers"), [({}, "serial", None), ({"timeout": "5 s"}, "dask", 1)])
def test_a_time_limit_of_a_study_gets_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, execution: dict[str, str], executor: str, workers: int | None
) -> None:
    study = designopt.define(
        study="timed", model=bowl, space={"x": [-3, 3], "y": [-3, 3]}, objectives=[{"minimize": "left"}],
        solver={"use": "random", "samples": 1}, execution=execution,
    )  # fmt: skip
    calls: list[dict[str, object]] = []
    monkeypatch.setattr(processes, "run_study", lambda *_, **options: calls.append(options))
    designopt.benchmark(
        sections(problems={"timed": study}, solvers={"sobol": {"use": "sobol"}}, seeds=1), tmp_path / "b"
    )
    assert (calls[0]["executor"], calls[0]["workers"]) == (executor, workers)


def test_scores_and_curves_count_evaluated_designs(tmp_path: Path) -> None:
    """A third of the designs violates the relation and costs nothing: after 8 designs means 8 that were evaluated."""
    study = {
        "model": {"use": "bowl"}, "space": {"x": [-3, 3], "y": [-3, 3]}, "relations": ["x <= 1"],
        "objectives": [{"minimize": "left"}],
    }  # fmt: skip
    problems, nsga2 = {"cut": {"study": study, "best": 0, "reference": {"left": 25}}}, {"use": "nsga2", "population": 8}
    stated = sections(problems=problems, solvers={"evolution": nsga2}, seeds=1, budgets=[8, 24])
    result = designopt.benchmark(stated, tmp_path / "small")
    (outcomes,) = _outcomes(result, tmp_path / "small", "cut")
    assert outcomes.invalid.sum() > 2
    (run,) = result.scores.problems[0].runs
    assert len(run.F) == 24
    best = outcomes.objectives[~outcomes.invalid][:8].min()
    assert result.scores.values("cut", "evolution", 8)[0] == pytest.approx((25.0 - best) / 25.0)


def test_the_page_states_what_was_compared(tmp_path: Path) -> None:
    designopt.benchmark(sections(seeds=[3, 5]), tmp_path / "small")
    page = (tmp_path / "small" / "report.html").read_text(encoding="utf-8")
    for text in ("nsga2 (population: 8)", "x -3 … 3; y -3 … 3", "minimize left; minimize right", "3 and 5"):
        assert text in page


_SOLVER = """
import numpy as np
from designopt import solver

@solver("mine", version=1)
class Mine:
    "Draws designs."
    needs_budget = True

    def solve(self, problem, evaluate, rng, start):
        space = problem.space
        while True:
            {body}
"""
_DRAW = "evaluate(space.from_search(space.lower + (space.upper - space.lower) * rng.random((4, 2))))"


def _benchmarked(tmp_path: Path, body: str, *options: str, file: str = "") -> subprocess.CompletedProcess[str]:
    """`designopt benchmark` with a solver of the user on a problem with the variables a and b in -1 to 1."""
    (tmp_path / "mine.py").write_text(_SOLVER.format(body=body))
    (tmp_path / "model.py").write_text(
        "from typing import TypedDict\nfrom designopt import model\n\nclass Out(TypedDict):\n    f: float\n\n"
        "@model('plane', version=1)\ndef plane(design, scenario) -> Out:\n"
        "    'A plane.'\n    return {'f': design['a'] + design['b']}\n"
    )
    (tmp_path / "own.yaml").write_text(
        "benchmark: own\nproblems:\n  plane:\n    study:\n      model: {use: plane}\n"
        "      space: {a: [-1, 1], b: [-1, 1]}\n      objectives: [{minimize: f}]\n"
        "solvers: {sobol: {use: sobol}, mine: {use: mine}}\nseeds: 1\nevaluations: 20\n"
    )
    command = [
        sys.executable,
        "-m",
        "designopt",
        "benchmark",
        "own.yaml",
        "--plugin",
        "mine.py",
        "--plugin",
        "model.py",
    ]
    return subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "evaluate(space.lower - rng.random((4, 2)))",
            "ValueError: solver 'mine' proposes a = -1.[0-9]+, which is outside its range, -1 to 1",
        ),
        ("evaluate(np.full((1, 4), np.nan)[:, :2])", "proposes a = nan, which is outside its range"),
        ("evaluate(space.lower)", r"designs are an array \(n, 2\), not one of shape \(2,\)"),
        (
            f"try: {_DRAW}\n            except Exception: pass",
            "the solver 'mine' goes on after StageEnded: it must not catch what evaluate raises",
        ),
        (
            f"try: {_DRAW}\n            except BaseException: pass",
            "the solver 'mine' goes on after StageEnded: it must not catch what evaluate raises",
        ),
    ],
)
def test_a_solver_that_breaks_its_rules_is_named_and_is_in_no_table(tmp_path: Path, body: str, message: str) -> None:
    completed = _benchmarked(tmp_path, body, "--workers", "2")
    assert completed.returncode == 3, completed.stderr
    assert re.search(message, completed.stderr)
    assert "mine" not in completed.stdout.splitlines()[0]
    assert re.search(r"run \(2/2\): (\d+)/\1 designs", completed.stderr)  # what failed is no part of the total


def test_changed_code_of_a_solver_is_named_and_another_version_is_a_difference(tmp_path: Path) -> None:
    assert _benchmarked(tmp_path, _DRAW).returncode == 0
    changed = _benchmarked(tmp_path, f"x = 1.0 * rng.random()\n            {_DRAW}")
    assert "note: the code of solver mine has changed since 1 run, but not its version" in changed.stdout
    (tmp_path / "mine.py").write_text(_SOLVER.replace("version=1", "version=2").format(body=_DRAW))
    command = [sys.executable, "-m", "designopt", "benchmark", "own.yaml", "--dry-run"]
    options = ["--plugin", "mine.py", "--plugin", "model.py"]
    out = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert "  1 made with another question or solver\n    plane, mine, seed 0: " in out
    assert "solver mine in version 2 instead of 1" in out


class _Snapshots:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def update(self, snapshot: object) -> None:
        self.notes.append(line(snapshot))  # type: ignore[arg-type]

    def event(self, kind: str, text: str) -> None:
        pass

    def close(self) -> None:
        pass


def test_the_progress_names_the_run_that_waits_longest(tmp_path: Path) -> None:
    progress = _Snapshots()
    designopt.benchmark(sections(seeds=1), tmp_path / "small", progress=progress)
    assert any(note.endswith("two, nsga2, seed 0") for note in progress.notes)
    assert progress.notes[-1].startswith("run (4/4): 96/96 designs")
    assert "seed" not in progress.notes[-1]
