"""The solver collocation: a study's parameters and the motion in one program. The optima of the damped start are known:
int x^2 dt = (c^2 + k m) x0^2/(2 c k), least at c = sqrt(k m)."""

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from designopt import define
from designopt.plugin import load_file
from designopt.problem import SolvedPrograms
from designopt.report.labels import answer_digits
from designopt.report.parts.answer.overview import overview
from designopt.report.terminal import summary_table
from designopt.solvers.collocation.requested_programs import model_differences
from designopt.solvers.collocation.symbolic import symbolic_value
from designopt.store.journal.writer import Journal
from designopt.store.result import Result
from designopt.study.language.expressions.expression import Expression
from designopt.testing.evaluation import InProcess, no_outcomes

MODELS = Path(__file__).with_name("collocation_models.py")
#: Of radau 5 with 100 intervals on 60 s, where a tail of the motion of 1e-6 is left.
ACCURACY = 5e-6


@pytest.fixture(autouse=True)
def _models():
    load_file(str(MODELS), MODELS.read_bytes())


def error(c, k=1.0, m=1.0, start=1.0):
    return (c**2 + k * m) * start**2 / (2.0 * c * k)


def study(**sections):
    load_file(str(MODELS), MODELS.read_bytes())
    solver_section = sections.pop("solver", {})
    solver = {"use": "collocation", "scheme": "radau", "degree": 5, "intervals": 100, **(solver_section or {})}
    return define(
        **({} if solver_section is None else {"solver": solver}),
        **{
            "study": "damped",
            "model": {"use": "damped_start"},
            "space": {"damping": [0.2, 5.0]},
            "objectives": [{"name": "decay", "minimize": "error"}],
            "execution": {"executor": "serial"},
            **sections,
        },
    )


def best(result):
    row = result.front()[0]
    return result.problem.space.values(result.outcomes.X[row]), float(result.outcomes.objectives[row, 0])


def events_of(result, kind):
    return [event["text"] for event in result.events if event["kind"] == kind]


def dump(result):
    journal = Journal.read(result.path, result.problem)
    try:
        return journal.dump()
    finally:
        journal.close()


# -------------------------------------------------------------------------------------------------- one program


def test_the_optimal_damper_is_found_and_evaluated_by_the_model_itself(tmp_path):
    result = study().run(tmp_path / "s")
    (record,) = result.programs()
    values, decay = best(result)
    assert values["damping"] == pytest.approx(1.0, rel=ACCURACY)
    assert record.figures["program(objective)"] == pytest.approx(1.0, rel=ACCURACY)
    assert decay == error(values["damping"])  # by the model's closed form, not by the program
    assert (record.stage, record.status, record.start) == ("collocation", "solved", {"damping": 2.0})
    assert record.optimum == values
    assert record.figures["loss"] == pytest.approx(0.5, rel=ACCURACY)
    assert record.figures["program(error_estimate)"] < 1e-4
    assert record.solution.phase.values["position"][0] == 1.0
    assert events_of(result, "solver_ended") == ["stage 'collocation': 1 program: 1 solved"]
    assert events_of(result, "objective_differs") == []


def test_a_study_whose_parameters_are_all_fixed_is_one_program(tmp_path):
    result = study(space={"damping": 2.0}, solver={"intervals": 60}).run(tmp_path / "s")
    (record,) = result.programs()
    assert (record.status, record.optimum) == ("solved", {"damping": 2.0})
    assert best(result) == ({"damping": 2.0}, error(2.0))
    assert Result.open(result.path).outcomes.objectives.tolist() == [[error(2.0)]]
    section = overview(result)
    (objective,) = result.problem.objectives
    assert f"How small can {objective.name} of {result.study.name} be?" in section.introduction
    assert section.findings[0].startswith(f"The result is {objective.name} ")


def test_units_and_logarithms_of_a_study_are_its_own_affair(tmp_path):
    space = {"damping": {"low": 200, "high": 1500, "unit": "N s/km", "scale": "log"}, "stiffness": "0.04 N/cm"}
    objective = {"name": "decay", "minimize": "error", "unit": "mm^2 s"}
    result = study(space=space, objectives=[objective]).run(tmp_path / "s")
    values, decay = best(result)  # c is at its upper bound of 1.5 N s/m, below sqrt(4)
    assert values["damping"] == pytest.approx(1500.0, rel=1e-5)
    assert decay == pytest.approx(1e6 * error(1.5, k=4.0), rel=1e-5)
    (record,) = result.programs()
    assert record.figures["program(objective)"] == pytest.approx(decay, rel=ACCURACY)
    assert record.solution.parameters == {"damping": pytest.approx(1.5, rel=1e-5), "stiffness": 4.0}


def test_a_search_before_gives_the_first_guess(tmp_path):
    stages = [
        {"name": "look", "solver": {"use": "full_factorial", "levels": 4}},
        {"name": "program", "solver": {"use": "collocation"}, "start_from": {"stage": "look"}},
    ]
    result = study(solver=None, stages=stages).run(tmp_path / "s")
    assert result.programs()[0].start == {"damping": pytest.approx(1.8)}  # the best of 0.2, 1.8, 3.4, 5


def test_limits_of_the_study_hold_in_the_program_and_by_the_model(tmp_path):
    # k/(2 c) <= 0.2 m^2/s asks for c >= 2.5
    limits = [{"name": "heat", "of": "loss", "max": 0.2}, {"name": "least", "of": "error", "min": 0.1}]
    result = study(constraints=limits).run(tmp_path / "s")
    values, decay = best(result)
    assert values["damping"] == pytest.approx(2.5, rel=2e-4)  # limits are tightened by 1e-4
    assert decay == pytest.approx(error(2.5), rel=2e-4)
    assert result.outcomes.feasible.all()
    assert result.programs()[0].solution.multipliers["heat"] < 0.0  # a looser limit makes the cost smaller


def test_names_of_a_study_need_not_differ_from_those_of_the_model(tmp_path):
    objectives = [{"name": "error", "minimize": "2*error"}]
    limits = [{"name": "released", "of": "loss", "max": 0.2}, {"name": "heat", "of": "loss", "max": 0.4}]
    model = {"use": "damped_start", "released": 5.0}  # its trajectory problem has a constraint of this name
    result = study(model=model, objectives=objectives, constraints=limits).run(tmp_path / "s")
    (record,) = result.programs()
    assert record.optimum["damping"] == pytest.approx(2.5, rel=2e-4)
    assert record.figures["error"] == pytest.approx(error(2.5), rel=2e-4)
    assert record.solution.terms == {"objective error": pytest.approx(2.0 * error(2.5), rel=2e-4)}
    assert list(record.solution.multipliers)[:3] == ["released", "limit released", "heat"]


def test_an_equality_of_a_figure_is_met(tmp_path):
    result = study(constraints=[{"name": "heat", "of": "loss", "equals": 0.125}]).run(tmp_path / "s")
    (record,) = result.programs()
    assert record.optimum["damping"] == pytest.approx(4.0, rel=ACCURACY)


def test_relations_between_parameters_are_constraints_of_the_program(tmp_path):
    space = {"damping": [0.2, 5.0], "stiffness": [0.5, 4.0]}
    relations = ["stiffness <= 2 [N/m] + 0.5 [1/s] * damping", "damping <= 0.6 [s] * stiffness"]
    result = study(space=space, relations=relations).run(tmp_path / "s")
    values, decay = best(result)
    reference = minimize(
        lambda v: error(v[0], v[1]), [1.0, 2.0], bounds=[(0.2, 5.0), (0.5, 4.0)], method="SLSQP", tol=1e-12,
        constraints=[{"type": "ineq", "fun": lambda v: 2.0 + 0.5 * v[0] - v[1]},
                     {"type": "ineq", "fun": lambda v: 0.6 * v[1] - v[0]}],
    )  # fmt: skip
    assert list(values.values()) == pytest.approx(reference.x.tolist(), rel=1e-4)
    assert decay == pytest.approx(reference.fun, rel=1e-5)
    assert not result.outcomes.invalid.any()


def test_a_program_without_a_solution_tells_why_and_leaves_its_last_iterate(tmp_path):
    limits = [{"name": "impossible", "of": "error", "max": 0.5}]  # the least is 1
    result = study(constraints=limits, solver={"intervals": 30}).run(tmp_path / "s")
    (record,) = result.programs()
    assert (record.ok, record.status) == (False, "locally_infeasible")
    assert "Other attempts failed too: rollout, coarse mesh first" in record.message
    assert "integral 'error' of decay: off by 0.5" in record.message
    assert record.solution.phase.values["position"][0] == pytest.approx(1.0)
    assert len(result.outcomes) == 0
    assert events_of(result, "solver_ended") == ["stage 'collocation': 1 program: 1 locally_infeasible"]


def test_the_end_of_a_run_without_a_solution_says_why_beside_the_baseline(tmp_path):
    result = study(solver={"intervals": 10, "max_iterations": 1, "persistent": False}, baseline={"damping": 0.5}).run(
        tmp_path / "s"
    )
    assert answer_digits(result) == 4
    text = summary_table(result)
    assert (
        "note: no program has a result. Most frequent end of a program: iteration_limit, 1 of 1, the first: The" in text
    )
    assert "in a study state more max_iterations, or starts\n" in text
    assert "note: violated at the last iterate, the worst first: " in text
    assert "is better than" not in text  # it has found none
    assert any(finding.startswith("No program has a result.") for finding in overview(result).findings)


def test_an_answer_has_no_more_digits_than_its_error_allows(tmp_path):
    result = study(solver={"intervals": 4, "mesh_check": 1e-9, "refine": {"rounds": 1, "tolerance": 1e-9}}).run(
        tmp_path / "s"
    )
    (record,) = result.programs()
    error = record.figures["program(error_estimate)"]
    assert record.status == "mesh_unresolved"
    assert 1e-4 < error < 1.0
    assert answer_digits(result) == max(2, 1 - math.floor(math.log10(error)))
    note = f"note: the best program ended as mesh_unresolved with an error estimate of {error:.1e}: Solved, but"
    assert note in summary_table(result)


def test_a_model_that_evaluates_the_optimum_otherwise_is_reported(tmp_path):
    result = study(model={"use": "damped_start", "bias": 1.01}).run(tmp_path / "s")
    (text,) = events_of(result, "objective_differs")
    assert "'decay' of the optimum differently from the program, by up to 1.01 instead of 1" in text
    assert any(finding[1:].startswith(text[1:]) for finding in overview(result).findings)
    ((row, decay),) = result.better_motions.items()
    assert (row, decay) == (0, pytest.approx(1.0, rel=ACCURACY))
    lines = summary_table(result).splitlines()
    assert lines[1].split()[-1] == "1.01"
    assert lines[2].split()[:3] == ["its", "program", "found"]
    assert float(lines[2].split()[-1]) == pytest.approx(1.0, rel=ACCURACY)
    assert "\nbest decay: its program found a better motion, with decay 1" in str(result)
    assert "decay 1.01 m^2 s (its program found 1" in overview(result).findings[0]
    (recommended,) = [table for table in overview(result).tables if table.title == "Recommended design"]
    assert recommended.note.startswith("A better motion is known: its program found 1")
    assert study(model={"use": "damped_start", "bias": 0.99}).run(tmp_path / "u").better_motions == {}
    result = study(
        model={"use": "damped_start", "bias": 1.01}, constraints=[{"name": "l", "of": "error", "max": 1.005}]
    ).run(tmp_path / "t")
    (text,) = events_of(result, "limits_differ")
    assert "violates limits that the program satisfies, by up to 0.005 of their size" in text


# ---------------------------------------------------------------------------------------------------- scenarios

LOADS = [{"name": "light", "mass": 1.0, "start": 1.0}, {"name": "heavy", "mass": 4.0, "start": 0.75}]


def of_loads(c):
    return np.array([error(c, m=load["mass"], start=load["start"]) for load in LOADS])


@pytest.mark.parametrize("over", ["mean", "worst", "nominal"])
def test_scenarios_share_their_parameters_in_one_program(tmp_path, over):
    objective = {"name": "decay", "minimize": "error", "over": over}
    result = study(scenarios=LOADS, objectives=[objective]).run(tmp_path / "s")
    aggregate = {"mean": np.mean, "worst": np.max, "nominal": lambda values: values[0]}[over]
    # The worst has its optimum in a kink, where both scenarios are equally bad: c^2 = 20/7.
    reference = minimize_scalar(lambda c: aggregate(of_loads(c)), bounds=(0.2, 5.0), options={"xatol": 1e-10})
    values, decay = best(result)
    assert values["damping"] == pytest.approx(reference.x, rel=2e-5)
    assert decay == pytest.approx(reference.fun, rel=ACCURACY)
    (record,) = result.programs()
    assert record.figures["program(objective)"] == pytest.approx(reference.fun, rel=ACCURACY)
    assert record.figures["heavy: error"] == pytest.approx(of_loads(reference.x)[1], rel=2e-5)
    assert list(record.solution.phases) == ["light: decay", "heavy: decay"]


def test_the_worst_of_small_numbers_is_found_as_exactly(tmp_path):
    objective = {"name": "decay", "minimize": "1e-5*error", "over": "worst"}
    result = study(scenarios=LOADS, objectives=[objective]).run(tmp_path / "s")
    values, decay = best(result)
    assert values["damping"] == pytest.approx(math.sqrt(20.0 / 7.0), rel=2e-5)
    assert result.programs()[0].figures["program(objective)"] == pytest.approx(decay, rel=ACCURACY)


@pytest.mark.parametrize(("over", "damping"), [("worst", 2.5), ("mean", 2.5 * (1.0 + 0.75**2) / 2.0)])
def test_limits_over_scenarios(tmp_path, over, damping):
    limit = {"name": "heat", "of": "loss", "max": 0.2, "over": over}  # x0^2/(2 c) <= 0.2
    objective = {"name": "decay", "minimize": "error", "over": "nominal"}
    result = study(scenarios=LOADS, objectives=[objective], constraints=[limit]).run(tmp_path / "s")
    assert best(result)[0]["damping"] == pytest.approx(damping, rel=2e-4)
    assert result.outcomes.feasible.all()


def test_the_worst_scenario_of_a_maximised_objective(tmp_path):
    objective = {"name": "decay", "maximize": "1/error", "over": "worst"}
    result = study(scenarios=LOADS, objectives=[objective]).run(tmp_path / "s")
    values, _ = best(result)
    assert values["damping"] == pytest.approx(math.sqrt(20.0 / 7.0), rel=2e-5)
    assert result.programs()[0].figures["program(objective)"] == pytest.approx(
        1 / of_loads(values["damping"]).max(), rel=1e-5
    )


# ------------------------------------------------------------------------------------------------------- sweeps


def test_a_sweep_holds_a_parameter_and_solves_one_program_for_each_level(tmp_path):
    space = {"damping": [0.2, 5.0], "stiffness": {"low": 0.5, "high": 4, "unit": "N/m", "scale": "log"}}
    result = study(space=space, solver={"sweep": {"stiffness": 4}}).run(tmp_path / "s")
    records = result.programs()
    assert [record.start["stiffness"] for record in records] == pytest.approx([0.5, 1.0, 2.0, 4.0])
    for record in records:
        k = record.start["stiffness"]
        assert record.optimum["damping"] == pytest.approx(math.sqrt(k), rel=2e-5)
        assert record.figures["program(objective)"] == pytest.approx(1.0 / math.sqrt(k), rel=2e-5)
    assert len(result.outcomes) == 4
    assert sum("full" in record.solution.warm_path for record in records) == 3  # all but the first of the chain


def test_levels_are_in_the_study_s_unit_or_their_own(tmp_path):
    space = {"damping": [0.2, 5.0], "stiffness": [0.5, 8.0]}
    result = study(space=space, solver={"sweep": {"stiffness": [4, "0.01 N/cm"]}}).run(tmp_path / "s")
    assert sorted(record.start["stiffness"] for record in result.programs()) == [1.0, 4.0]


def test_whole_numbers_and_choices_are_swept_over_all_their_values(tmp_path):
    space = {"damping": [0.2, 5.0], "stiffness": {"values": [1, 2, 4]}}
    result = study(space=space).run(tmp_path / "s")
    assert sorted(record.start["stiffness"] for record in result.programs()) == [1, 2, 4]
    assert best(result)[0] == {"damping": pytest.approx(2.0, rel=2e-5), "stiffness": 4}


def test_a_parameter_whose_condition_does_not_hold_has_the_model_s_own_value(tmp_path):
    space = {
        "damping": {"values": [1.0, 2.0]},
        "stiffness": {"low": 0.5, "high": 8.0, "unit": "N/m", "when": {"damping": 2.0}},
    }
    result = study(space=space).run(tmp_path / "s")
    fixed, free = sorted(result.programs(), key=lambda record: record.start["damping"])
    assert fixed.start == {"damping": 1.0}
    assert fixed.solution.parameters["stiffness"] == 1.0
    assert free.optimum == {"damping": 2.0, "stiffness": pytest.approx(8.0, rel=1e-6)}  # the stiffer, the better


def test_combinations_that_break_a_relation_between_held_parameters_are_left_out(tmp_path):
    space = {"damping": [0.2, 5.0], "stiffness": {"values": [1, 2, 4]}}
    result = study(space=space, relations=["stiffness <= 2"]).run(tmp_path / "s")
    assert sorted(record.start["stiffness"] for record in result.programs()) == [1, 2]


def test_other_guesses_and_cold_solves_are_programs_of_their_own(tmp_path):
    space = {"damping": [0.2, 5.0], "stiffness": [0.5, 8.0]}
    solver = {"sweep": {"stiffness": 3}, "starts": 3, "verify": 2}
    result = study(space=space, solver=solver).run(tmp_path / "s")
    records = result.programs()
    assert len(records) == 3 * 3 + 2
    assert all(record.ok for record in records)
    assert len({record.start["damping"] for record in records}) == 3
    assert sum(record.solution.seed > 0 for record in records) == 2 * 3  # the random numbers of other guesses
    assert len(result.outcomes) == 3  # one design for each point
    assert events_of(result, "programs_differ") == []  # there is one optimum
    repeated = study(space=space, solver=solver).run(tmp_path / "t")
    assert dump(repeated) == dump(result)


def test_starts_cover_the_whole_range_of_a_parameter(tmp_path):
    result = study(solver={"starts": 7, "intervals": 40}).run(tmp_path / "s")
    further = np.array([record.start["damping"] for record in result.programs()[1:]])
    # a Latin hypercube: one in each sixth of 0.2 to 5
    assert sorted(np.floor((further - 0.2) / 4.8 * 6.0).tolist()) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("over", ["mean", "worst"])
def test_a_parameter_that_no_system_has_is_one_of_the_study_too(tmp_path, over):
    definition = study(
        model={"use": "braked"},
        space={"damping": [0.2, 5.0], "colour": {"low": 300, "high": 800, "unit": "nm"}},
        scenarios=[{"name": "light", "mass": 1}, {"name": "heavy", "mass": 2}],
        objectives=[{"name": "decay", "minimize": "loss", "over": over}],
    )
    values, _ = best(definition.run(tmp_path / "s"))
    assert values["colour"] == pytest.approx(500.0, abs=1e-3)


class ProgramsByRule:
    """An `evaluate` that says what became of programs by rule: `objective` of (row, stiffness), NaN for a failure."""

    def __init__(self, problem, objective):
        self.inner = InProcess(problem)
        self.objective = objective
        self.requests = None
        self.notes = []

    def programs(self, X, chains, seeds):
        self.requests = list(zip(chains, seeds, X[:, 1].tolist(), strict=True))
        values = np.array([self.objective(row, stiffness) for row, stiffness in enumerate(X[:, 1].tolist())])
        figures = {"program(objective)": values, "optimum(damping)": 1.0 + 0.01 * np.arange(len(X))}
        ok = np.isfinite(values)
        return SolvedPrograms(ok, figures, tuple("solved" if good else "stalled" for good in ok))

    def note(self, kind, text):
        self.notes.append((kind, text))

    def __call__(self, X):
        return self.inner(X)


def solved_by_rule(objective, **settings):
    definition = study(
        space={"damping": [0.2, 5.0], "stiffness": [0.5, 8.0]}, solver={"sweep": {"stiffness": 4}, **settings}
    )
    evaluate = ProgramsByRule(definition.problem, objective)
    solver = definition.definition.stages[0].solver.build()
    end = solver.solve(definition.problem, evaluate, np.random.default_rng(0), no_outcomes(definition.problem))
    return evaluate, end


def test_the_best_program_of_each_point_is_evaluated_and_failures_are_counted():
    # rows 0 to 3 are the chain, 4 to 7 the second start of each point
    values = [2.0, math.nan, 2.0, math.nan, 1.0, 1.5, 2.0 * (1.0 - 1e-9), math.nan]
    evaluate, end = solved_by_rule(lambda row, _: values[row], starts=2)
    assert evaluate.inner.X[:, 0].tolist() == pytest.approx([1.04, 1.05, 1.02])  # of equals the first
    points = "the starts end at different optima at 1 of 3 points, most of all"
    assert end == f"8 programs: 5 solved, 3 stalled; {points}: decay 1 to 2 m^2 s, 1 of 2 starts reach the best"
    assert [chain for chain, _, _ in evaluate.requests] == [0, 0, 0, 0, 1, 2, 3, 4]
    assert [seed > 0 for _, seed, _ in evaluate.requests] == [False] * 4 + [True] * 4


def test_starts_that_end_at_one_optimum_are_only_counted():
    _, end = solved_by_rule(lambda row, _: 1.0 + 1e-7 * row, starts=3)
    assert end == "12 programs: 12 solved"


def test_points_that_end_elsewhere_when_they_are_solved_cold_are_reported():
    evaluate, _ = solved_by_rule(lambda row, _: 1.0 if row < 4 else 0.9, chain=2, verify=5)
    assert [chain for chain, _, _ in evaluate.requests] == [0, 0, 1, 1, 2, 3]  # the first of a chain is cold anyway
    (text,) = [text for kind, text in evaluate.notes if kind == "programs_differ"]
    assert text.startswith("2 of 2 points that were also solved cold have other optima (objectives differ by up to 0.1")
    assert evaluate.inner.X[:, 0].tolist() == pytest.approx([1.0, 1.04, 1.02, 1.05])  # what is better counts
    same, _ = solved_by_rule(lambda row, _: 1.0 if row < 4 else 1.0 + 5e-7, chain=2, verify=5)
    assert [kind for kind, _ in same.notes if kind == "programs_differ"] == []


def compared_decays(model_decays, decays, errors, *, takes_options=False):
    model = SimpleNamespace(plugin=SimpleNamespace(takes_options=takes_options))
    objectives = [SimpleNamespace(name="decay", sign=1.0)]
    problem = SimpleNamespace(objectives=objectives, model=model, evaluation_options={})
    outcomes = SimpleNamespace(objectives=np.array(model_decays)[:, None], violation=np.zeros(len(decays)))
    return model_differences(problem, outcomes, np.array(decays), errors=np.array(errors), starts=2)


def test_evaluations_without_a_result_are_compared_with_nothing():
    # warnings are errors here: infinite and missing numbers are passed over in silence
    ((kind, text),) = compared_decays([math.inf, math.nan, 1.1, 1.0], [math.inf, 1.0, 1.0, 1.0], [math.nan] * 4)
    assert kind == "objective_differs"
    assert text.startswith(
        "the model evaluates 'decay' of 1 of 4 optima differently from the program, by up to 1.1 instead"
    )


def test_a_difference_that_the_mesh_cannot_explain_is_that_of_two_optima():
    ((_, text),) = compared_decays([1.1], [1.0], [1e-5], takes_options=True)
    assert "instead of 1: the two are different local optima: raise 'starts' of the solver (2 here), which" in text
    assert "mesh" not in text
    ((_, text),) = compared_decays([1.1], [1.0], [1e-5])
    assert "different local optima: give the model a better guess, or more starts (see its settings)" in text
    ((_, text),) = compared_decays([1.1], [1.0], [1e-2], takes_options=True)
    assert "instead of 1: the mesh is too coarse: state 'refine' or 'intervals'" in text


def test_a_refined_mesh_is_as_fine_as_it_was_asked_for(tmp_path):
    solver = {"intervals": 10, "refine": {"tolerance": 1e-6, "method": "hp"}}
    result = study(solver=solver).run(tmp_path / "s")
    (record,) = result.programs()
    assert record.figures["program(error_estimate)"] <= 1e-6
    assert len(record.solution.rounds) > 1
    assert best(result)[0]["damping"] == pytest.approx(1.0, rel=1e-6)


# ----------------------------------------------------------------------------------------------- runs, workers

SWEPT = {
    "space": {"damping": [0.2, 5.0], "stiffness": [0.5, 8.0]},
    "solver": {"sweep": {"stiffness": 5}, "chain": 3, "intervals": 30},
    "scenarios": LOADS,
}


def test_the_journal_is_the_same_from_one_process_and_from_two_workers(tmp_path):
    serial = study(**SWEPT).run(tmp_path / "serial")
    parallel = study(**SWEPT, execution={"executor": "dask", "workers": 2}).run(tmp_path / "dask")
    assert dump(parallel) == dump(serial)
    assert parallel.sessions[0]["executor"] == "dask"
    assert parallel.programs()[-1].solution.success


def test_expressions_mean_the_same_to_casadi():
    import casadi as ca

    text = "abs(a - 2*b)/sqrt(b) + min(a, b, 1)**2 - max(a, b)*exp(-a) + log(b) + b**0.5"
    expression = Expression.parse(text)
    a, b = ca.SX.sym("a"), ca.SX.sym("b")
    function = ca.Function("f", [a, b], [symbolic_value(expression.root, {"a": a, "b": b})])
    for values in ({"a": 0.3, "b": 1.7}, {"a": 2.0, "b": 0.4}):
        assert float(function(*values.values())) == pytest.approx(float(expression.evaluate(values)), rel=1e-14)
