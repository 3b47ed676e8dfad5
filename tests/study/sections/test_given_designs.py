"""Studies that analyse: without space or objectives, with designs that are given; every mistake at its place."""

import pytest

from designopt.problem import Problem
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_text

#: Without a space: the designs give inputs of the model. `test_field` needs a criterion in every design.
ANALYSIS = """\
study: trial
model: {use: test_field}
scenarios:
  - {name: nominal, speed: 5 m/s}
solver:
  use: evaluate
  designs:
    - {name: soft, criterion: cubed, stress: 0.3 N/mm^2}
    - {name: hard, criterion: entropy, stress: 60}
execution: {executor: serial}
"""

SPACE = """\
study: trial
model: {use: test_field}
space:
  criterion: {values: [cubed, entropy]}
  stress: {low: 20, high: 100, unit: N/cm^2}
  terms: {type: int, low: 1, high: 4, when: {criterion: entropy}}
scenarios:
  - {name: nominal, speed: 5 m/s}
solver:
  use: evaluate
  table: designs.csv
"""

TABLE = "name;criterion;stress [N/mm^2];terms\nsoft;cubed;0.3;\nhard;entropy;0.6;2\n"


def load(text: str, table: str = TABLE):
    return study_from_text(text, "trial.yaml", files={"designs.csv": table.encode()}, problem_of=Problem.from_study)


def mistakes(text: str, table: str = TABLE):
    with pytest.raises(StudyError) as caught:
        load(text, table)
    return caught.value.issues


def test_designs_without_a_space_are_in_the_units_of_the_model() -> None:
    study = load(ANALYSIS)
    assert [(p.name, p.kind) for p in study.space] == [("criterion", "choice"), ("stress", "real")]
    space = Problem.from_study(study).space
    X = study.stages[0].solver.build().rows(space)
    assert [space.design(x) for x in X.tolist()] == [
        {"criterion": "cubed", "stress": 30.0},
        {"criterion": "entropy", "stress": 60.0},
    ]


def test_a_table_gives_designs_in_the_units_of_its_columns() -> None:
    study = load(SPACE)
    space = Problem.from_study(study).space
    X = study.stages[0].solver.build().rows(space)
    assert [space.values(x) for x in X.tolist()] == [
        {"criterion": "cubed", "stress": 30.0},
        {"criterion": "entropy", "stress": 60.0, "terms": 2},
    ]


def test_an_evaluation_has_the_key_that_it_has_in_a_search() -> None:
    """A design that is given without a space, one of a choice in a space and one of a range are one evaluation."""
    analysis, search = Problem.from_study(load(ANALYSIS)), Problem.from_study(load(SPACE))
    analysis_rows = load(ANALYSIS).stages[0].solver.build().rows(analysis.space)
    search_rows = load(SPACE).stages[0].solver.build().rows(search.space)
    assert analysis.keys(analysis_rows)[0] == search.keys(search_rows)[0]


def test_a_model_without_inputs_needs_neither_space_nor_designs() -> None:
    study = load("study: s\nmodel: {use: test_open}\nsolver: {use: evaluate}\n")
    assert study.space == ()
    assert study.objectives == ()
    assert study.stages[0].solver.build().rows(Problem.from_study(study).space).shape == (1, 0)


def test_arrays_of_an_analysis_are_kept_of_all_evaluations() -> None:
    text = (
        "study: s\nmodel: {use: test_wheel, mass: 3}\nspace: {stiffness: 2, damping: 3}\nsolver: {use: evaluate}\n"
        "execution: {arrays: [time]}\n"
    )
    assert dict(load(text).execution.arrays) == {"time": "all"}


def test_an_input_that_a_design_leaves_out_has_the_default_of_the_model() -> None:
    text = (
        "study: s\nmodel: {use: muscle_sharing}\nsolver:\n  use: evaluate\n  designs:\n"
        "    - {name: cubes, exponent: 3}\n"
        "    - {name: flat, criterion: minmax}\n"
    )
    study = load(text)
    points = study.stages[0].solver.settings["designs"]
    assert [(point["exponent"], point["criterion"]) for point in points] == [(3.0, "power"), (2.0, "minmax")]


MISTAKES = [
    (ANALYSIS, "stress: 60}", "stress: «60 kg»}", "solver.designs.1.stress", "'kg' cannot be converted"),
    (ANALYSIS, "stress: 60}", "stress: «-60»}", "solver.designs.1.stress", "must be above 0"),
    (ANALYSIS, "stress: 60}", "«stres»: 60}", "solver.designs.1.stres", "has no design input 'stres'; did you mean"),
    (ANALYSIS, ", stress: 60}", "}", "solver.designs.1", "a value of 'stress' is missing: other designs give it"),
    (ANALYSIS, "criterion: entropy, ", "", "solver.designs.1", "'criterion' is missing: the model needs it"),
    (ANALYSIS, "name: hard", "name: «soft»", "solver.designs.1.name", "there is another design named 'soft'"),
    (ANALYSIS, "name: hard, ", "", "solver.designs.1", "'name' is missing"),
    (ANALYSIS, "name: hard", "name: «[a]»", "solver.designs.1.name", "a list is not a name"),
    (ANALYSIS, "use: evaluate", "use: «evaluat»", "solver", "did you mean 'evaluate'?"),
    (ANALYSIS, "  use: evaluate", "  use: evaluate\n  «table»: designs.csv", "solver.table", "not both"),
    (ANALYSIS, "{executor: serial}", "{arrays: {«time»: all}}", "execution.arrays.time", "has no array"),
    (ANALYSIS, "execution: {executor: serial}", "relations: [«a» < 1]", "relations", "which is missing"),
    (ANALYSIS, "execution: {executor: serial}", "report: {choose: [«knee»]}", "report.choose.0", "two or more"),
    (
        ANALYSIS,
        "execution: {executor: serial}",
        "report: {«validate»: {scenarios: [{name: a, speed: 1}]}}",
        "report.validate",
        "put these scenarios under 'scenarios'",
    ),
    (ANALYSIS, "  use: evaluate", "  use: «test_search»", "", "'space' is missing"),
    (SPACE, "table: designs.csv", "table: «design.csv»", "solver.table", "did you mean 'designs.csv'?"),
    (SPACE, "  use: evaluate\n  table: designs.csv", "  use: «evaluate»", "solver", "criterion, stress, terms vary"),
    (
        SPACE,
        "  stress: {low: 20, high: 100, unit: N/cm^2}\n",
        "",
        "solver.table",
        "designs.csv:1:16: 'stress' is not in",
    ),
]


@pytest.mark.parametrize(("base", "find", "replacement", "path", "fragment"), MISTAKES)
def test_a_mistake_is_answered_at_its_place(base, find, replacement, path, fragment, changed) -> None:
    text, line, column, _ = changed(base, find, replacement)
    issues = [issue for issue in mistakes(text) if fragment in issue.message]
    assert len(issues) >= 1, mistakes(text)
    assert issues[0].path == path
    if "«" in replacement and path and "." in path:
        assert (issues[0].line, issues[0].column) == (line, column)


CELLS = [
    ("hard;entropy;0.6;2", "hard;entropy;6;2", "designs.csv:3:14: must be from 20 to 100 N/cm^2, not 600"),
    ("hard;entropy;0.6;2", "hard;entrop;0.6;2", "designs.csv:3:6: 'criterion' cannot be the word 'entrop'; did you"),
    ("hard;entropy;0.6;2", "soft;entropy;0.6;2", "designs.csv:3:1: there is another design named 'soft'"),
    ("hard;entropy;0.6;2", "hard;entropy;;2", "designs.csv:3: a value of 'stress' is missing"),
    ("hard;entropy;0.6;2", "hard;entropy;0.6;2.5", "designs.csv:3:18: 'terms' cannot be the number 2.5"),
    ("hard;entropy;0.6;2", "hard;entropy;0.6", "designs.csv:3: has 3 cells, the header has 4"),
    ("hard;entropy;0.6;2", 'hard;"entropy;0.6;2', "designs.csv:3:6: the quote is never closed"),
    ("[N/mm^2]", "[Nn]", "designs.csv:1:16: unknown unit 'Nn'"),
    ("terms", "name", "designs.csv:1:32: there is another column 'name'"),
    (TABLE, "", "designs.csv is empty"),
    (TABLE, "name;stress\n", "designs.csv has no rows"),
]


@pytest.mark.parametrize(("find", "replacement", "message"), CELLS)
def test_a_mistake_in_a_table_is_reported_with_its_cell(find: str, replacement: str, message: str) -> None:
    issues = mistakes(SPACE, TABLE.replace(find, replacement))
    assert len(issues) == 1, issues
    assert issues[0].path == "solver.table"
    assert (issues[0].line, issues[0].column) == (11, 10)
    assert issues[0].message.startswith(message)
