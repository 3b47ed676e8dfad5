"""No mistake hides another one that does not depend on it, and none is told twice by what follows from it."""

import re

import pytest

from designopt.problem import Problem
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_text

# What is replaced in the full study and by what; « and » mark what the carets must point at. Space and objectives stay
# sound: of them is made the problem on which the solvers have their say.
MANY = [
    ("seed: 3", "seed: «-3»", "seed", "must be at least 0"),
    ("relations:\n", "«relatons»:\n", "", "did you mean 'relations'?"),
    ("speed: 5 m/s, friction: 0.6", "speed: «5 kg», «frction»: 0.6", "scenarios.0", "speed|did you mean 'friction'?"),
    ("count: 4", "count: «none»", "scenarios.1.count", "not the word 'none'"),
    ("jitter: false", "jitter: «maybe»", "scenarios.1.jitter", "expected true or false"),
    ("mass: {low: 1 t, high", "mass: {low: «1 m», high", "scenarios.1.vary.mass.low", "incompatible units"),
    ("values: [sand, snow]", "values: [sand, «snw»]", "scenarios.1.vary.terrain.values.1", "did you mean 'snow'?"),
    ("deviation: 0.5", "«deviaton»: 0.5", "scenarios.1.vary.wind", "did you mean 'deviation'?"),
    ("high: 5 m/s", "high: «5 s»", "scenarios.1.vary.wind.high", "incompatible units"),
    ("  - name: sweep\n    solver: {use: test_grid}", "  - name: «7»\n    solver: {use: test_grid, levels: «{x: 3}»}",
     "stages.0", "put quotes|'x' is not in space"),
    ("nondominated: 5", "nondominated: «0»", "stages.1.start_from.nondominated", "must be at least 1"),
    ("population: 20", "population: «1», «mutation_rate»: 3", "stages.1.solver", "at least 2|unknown key"),
    ("evaluations: 500", "evaluations: «15.5»", "stages.1.budget.evaluations", "must be an integer"),
    ("peak: 1 rad", "peak: «1 m»", "stages.1.budget.hypervolume.reference.peak", "incompatible units"),
    ("gain_below: 1e-4", "gain_below: «0»", "stages.1.budget.hypervolume.gain_below", "must be above 0"),
    ("use: slurm", "use: «slrum»", "execution.cluster.use", "did you mean 'slurm'?"),
    ("minimum: 2", "minimum: «21»", "execution.cluster.minimum", "must be at most jobs (20)"),
    ("interface: ib0\n", "interface: ib0\n  arrays: [«time»]\n", "execution", "has no array"),
    ("timeout: 20 s", "timeout: «20 m»", "execution.timeout", "incompatible units"),
    ("plots: [test_part]", "plots: [«test_prt»]", "report.plots.0", "did you mean 'test_part'?"),
    ("- knee", "- «kne»", "report.choose.0", "did you mean 'knee'?"),
    ("norm: minmax, weights: {mismatch", "norm: «mx», weights: {«mismtch»", "report.choose.2.topsis",
     "is not one of|did you mean 'mismatch'?"),
    ("count: 3", "count: «0»", "report.validate.scenarios.count", "must be at least 1"),
    ("with: {speed: 5}", "with: {speed: «30»}", "report.validate.scenarios.with.speed", "must be at most 20 m/s"),
    ("quantiles: [0.1, 0.9]", "quantiles: [«1.1», 0.9, «0.9»]", "report.validate.quantiles", "at most 1|given twice"),
    ("peak: 60, gap: 0}", "peak: «60 s», gap: 0}", "report.reference.peak", "incompatible units"),
    ("export: [csv, parquet", "export: [«cvs», parquet", "report.export.0", "did you mean 'csv'?"),
]  # fmt: skip


def test_a_file_with_dozens_of_independent_mistakes_tells_all_of_them_at_once(mistakes, full_text) -> None:
    text = full_text
    for find, replacement, _, _ in MANY:
        assert text.count(find) == 1, find
        text = text.replace(find, replacement)
    places = []
    for number, line in enumerate(text.splitlines(), 1):
        marks = [match.start() for match in re.finditer("[«»]", line)]
        columns = [at - before + 1 for before, at in enumerate(marks)]
        places += [(number, *pair) for pair in zip(columns[::2], columns[1::2], strict=True)]
    words = [(path, word) for _, _, path, several in MANY for word in several.split("|")]
    issues = mistakes(re.sub("[«»]", "", text))
    assert [(i.line, i.column, i.end_column) for i in issues] == places, "all of them, in file order"
    assert len(issues) == len(words) >= 30
    for issue, (path, word) in zip(issues, words, strict=True):
        assert issue.path.startswith(path)
        assert word in f"{issue.path} {issue.message}", issue


KEY = re.compile(r"(?<![\w:/])(?!use)[a-z_]{3,}(?=: |:\n)")


@pytest.mark.parametrize("name", ["base_text", "full_text"])
@pytest.mark.parametrize(
    "misspell", [lambda k: k + k[-1], lambda k: k[:-2] + k[-1] + k[-2]], ids=["doubled", "swapped"]
)
def test_a_misspelt_key_is_reported_as_one_mistake(request, mistakes, name, misspell) -> None:
    text = request.getfixturevalue(name)
    for match in KEY.finditer(text):
        wrong = misspell(match[0])
        if wrong != match[0]:
            issues = mistakes(text[: match.start()] + wrong + text[match.end() :])
            assert len(issues) == 1, issues
            assert f"'{wrong}'" in issues[0].message


@pytest.mark.parametrize(
    ("find", "replacement", "path"),
    [
        ("stiffness: {low: 1.0e4", "stiffness: {low: 0", "space.stiffness.low"),
        ("minimize: 1 - rho", "goal: 1 - rho", "objectives.0"),
        ("of: toe_clearance, min: 5 mm", "of: toe_clearance, least: 5 mm", "constraints.0"),
        ("start_from: {stage: sweep, n", "start_from: {after: sweep, n", "stages.1.start_from"),
        ("    budget: {evaluations: 500, wall: 2 h}", "    limit: {evaluations: 500}", "stages.1"),
        ("budget: {evaluations: 500, wall: 2 h}", "budget: {designs: 500}", "stages.1.budget"),
        ("offset: {type: int, low: -3, high: 3, unit: mm}", "offset: {low: -3, high: 3, einheit: mm}", "space.offset"),
    ],
)
def test_consequences_of_a_mistake_are_not_reported(mistakes, base_text, find, replacement, path) -> None:
    assert base_text.count(find) == 1
    assert [issue.path for issue in mistakes(base_text.replace(find, replacement))] == [path]


@pytest.mark.parametrize(
    ("find", "replacement"),
    [
        ("description", "description"),
        ("executor: dask", "executor: dusk"),
        ("plots: [test_part]", "plots: [7]"),
        ("evaluations: 500", "evaluations: 0"),
        ("name: search", "name: 7"),
        ("- damping <= 0.1 [s] * stiffness", "- damping <= stiffness"),
        ("load: 1 kN", "load: 1 kg"),
        ("min: 5 mm", "min: 5 s"),
    ],
)
def test_solvers_are_asked_about_the_problem_whatever_else_is_wrong(mistakes, base_text, find, replacement) -> None:
    text = base_text.replace("levels: {stiffness: 5, damping: 3}", "levels: {stif: 5}").replace(find, replacement)
    paths = [issue.path for issue in mistakes(text)]
    assert "stages.0.solver.levels" in paths
    assert len(paths) == (1 if find == replacement else 2)


@pytest.mark.parametrize(
    ("find", "replacement"), [("low: 1.0e4", "low: -1"), ("minimize: 1 - rho", "minimize: 1 - roh"), ("3 kg", "3 s")]
)
def test_solvers_are_not_asked_about_a_problem_that_is_wrong_itself(mistakes, base_text, find, replacement) -> None:
    text = base_text.replace("levels: {stiffness: 5, damping: 3}", "levels: {stif: 5}").replace(find, replacement)
    assert len(mistakes(text)) == 1


def test_the_bundled_solvers_report_their_mistakes_beside_others(base_text) -> None:
    text = base_text.replace(
        "use: test_grid, levels: {stiffness: 5, damping: 3}", "use: full_factorial, levels: {a: 2}"
    )
    text = text.replace("use: test_search, population: 20", "use: nsga2, population: 20").replace("500", "8")
    text = text.replace("workers: 2", "workers: -2")
    with pytest.raises(StudyError) as caught:
        study_from_text(text, "damper.yaml", files={"curve.csv": b"1,2\n"}, problem_of=Problem.from_study)
    paths = [issue.path for issue in caught.value.issues]
    assert paths == ["stages.0.solver.levels", "stages.1.budget.evaluations", "execution.workers"]
