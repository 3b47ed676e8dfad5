"""What the parts about trajectory programs show, of solutions that are known."""

from dataclasses import replace
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from designopt_motion.cart_pole import CartPole

from designopt.collocation import Integral, Options, Phase, Program, TrajectoryProblem, linked, solve
from designopt.collocation.solution.solution import Status
from designopt.dynamics.system import System, Variable
from designopt.report.labels import number
from designopt.report.parts.motion.programs import programs
from designopt.report.parts.motion.solving import solving
from designopt.report.parts.motion.trajectories import _end_costates, activity, in_short, trajectories
from designopt.report.traces import constant_axis
from designopt.store.views.programs import best_program, better_motions


def swing_up(length, **scenario):
    problem = CartPole().trajectory_problem(scenario)
    problem = replace(problem, parameters={"pole_length": length, "duration": (1.0, 2.2)})
    return solve(problem, Options(intervals=30))


@pytest.fixture(scope="module")
def solutions():
    return [swing_up(0.5), swing_up(0.6, max_force=12.0)]


def record(solution, **start):
    figures = {}
    if solution:
        figures = {"optimum(duration)": solution.parameters.get("duration", np.nan),
                   "program(objective)": solution.objective,
                   "program(iterations)": float(solution.iterations),
                   "program(error_estimate)": solution.error_estimate}  # fmt: skip
    status = solution.status.name.lower() if solution else "timeout"
    message = solution.message if solution else "took longer than 1 s"
    return SimpleNamespace(
        stage="programs", start={**start, "duration": 2.0}, ok=bool(solution), status=status, message=message,
        figures=figures, wall=0.1, solution=solution, sparsity=None,
    )  # fmt: skip


def result(*records, sign=1.0, better_motions=None):
    units = {"pole_length": ("m", 1.0), "duration": ("ms", 1e-3)}
    parameters = [SimpleNamespace(name=n, unit=u, factor=f, offset=0.0) for n, (u, f) in units.items()]
    problem = SimpleNamespace(
        objectives=[SimpleNamespace(name="effort", sign=sign, unit="s")], space=SimpleNamespace(parameters=parameters)
    )
    return SimpleNamespace(
        programs=lambda: records,
        best_program=lambda: best_program(records, sign),
        better_motions=better_motions or {},
        problem=problem,
    )


def test_a_study_without_programs_has_neither_part():
    assert programs(result()) is None
    assert trajectories(result()) is None
    assert solving(result()) is None


def test_states_and_controls_are_drawn_over_time_with_their_limits(solutions):
    section = trajectories(result(record(solutions[1], pole_length=0.6)))
    figures = {figure.title: figure for figure in section.figures}
    assert {"States", "Controls", "Costates"} <= set(figures)
    texts = [note["text"] for note in figures["Controls"].plot["layout"]["annotations"]]
    assert texts[0] == "<b>force [N]</b>"
    force = [trace for trace in figures["Controls"].plot["data"] if trace["yaxis"] == "y"]
    curve = next(trace for trace in force if len(trace["x"]) > 100)
    assert curve["x"][[0, -1]].tolist() == pytest.approx([0.0, solutions[1].phase.tf])
    dashed = sorted(float(trace["y"][0]) for trace in force if trace.get("line", {}).get("dash") == "dash")
    assert dashed == [-12.0, 12.0]
    # A costate has the unit of the objective (s) by that of its state.
    costates = figures["Costates"].plot["layout"]["annotations"]
    assert "<b>cart [s/m]</b>" in [note["text"] for note in costates]
    (ends,) = [table for table in section.tables if table.title == "Costates at the ends"]
    assert ends.columns == ("costate of", "at the start", "at the end", "unit")
    phase = solutions[1].phase
    finite = phase.costates["cart"][np.isfinite(phase.costates["cart"])]
    assert ("cart", finite[0], finite[-1], "s/m") in ends.rows
    free_end = replace(phase, costates={"cart": np.array([2.0, 1.0, 4e-14])})
    one_program = [SimpleNamespace(number=1, solution=SimpleNamespace(phases={"swing": free_end}))]
    assert _end_costates(one_program, SimpleNamespace(unit="s", sign=1.0))[0].rows == (("cart", 2.0, 0.0, "s/m"),)


def test_a_constant_has_its_value_at_its_axis() -> None:
    constant = constant_axis([-0.0992881, -0.0992881 + 1e-10], 5)
    assert constant["ticktext"] == ["−0.099288"]
    low, high = constant["range"]
    assert low < -0.0992881 < high
    assert constant_axis([0.0, 1e-3]) == {}
    assert constant_axis([2e-6, -2e-6], least=1e-5) == {"range": [-1e-5, 1e-5], "tickvals": [0.0], "ticktext": ["0"]}
    assert constant_axis([0.5, 0.500004], least=1e-5)["ticktext"] == ["0.5"]


def test_equations_over_the_motion_that_hold_are_named_and_not_drawn(solutions):
    phase = solutions[0].phase
    residual = 1e-15 * np.sin(40.0 * phase.times[phase.mesh.first :])
    path = {"balance": residual, "contact": residual, "lost": 1e10 * residual}
    limits = {"balance": (0.0, 0.0), "contact": (0.0, 1.0), "lost": (0.0, 0.0)}
    with_path = replace(solutions[0], phases={phase.name: replace(phase, path=path, path_limits=limits)})
    (figure,) = [f for f in trajectories(result(record(with_path))).figures if f.title == "Path constraints"]
    assert [note["text"] for note in figure.plot["layout"]["annotations"]] == ["<b>contact</b>", "<b>lost</b>"]
    assert figure.note == "Equations that hold within 1e-08 are not drawn: balance."


def test_states_controls_and_costates_that_are_zero_throughout_are_named_and_not_drawn(solutions):
    phase = solutions[0].phase
    tiny = 1e-16 * np.sin(40.0 * phase.times)
    values = {**phase.values, "angle": tiny, "force": tiny}
    at_rest = replace(phase, values=values, costates={**phase.costates, "angle": tiny})
    section = trajectories(result(record(replace(solutions[0], phases={phase.name: at_rest}))))
    figures = {figure.title: figure for figure in section.figures}
    for title, name in (("States", "angle"), ("Controls", "force"), ("Costates", "angle")):
        assert figures[title].note.endswith(f"Zero throughout: {name}.")
        names = [note["text"] for note in figures[title].plot["layout"]["annotations"]]
        assert names
        assert not any(text.startswith(f"<b>{name} [") for text in names)


def test_errors_of_a_constant_costate_are_not_zoomed_into(solutions):
    noise = 1e-7 * np.array([1.0, -1.0])
    phase = solutions[1].phase
    rough = 1.0 + np.resize(noise, len(phase.times)) * np.nanmax(np.abs(phase.costates["cart"]))
    noisy = replace(phase, costates={**phase.costates, "cart": rough})
    section = trajectories(result(record(replace(solutions[1], phases={phase.name: noisy}))))
    (costates,) = [figure for figure in section.figures if figure.title == "Costates"]
    assert costates.plot["layout"]["yaxis"]["ticktext"] == ["1"]


def test_a_motion_that_is_not_that_of_the_answer_says_so(solutions):
    one = record(solutions[0], pole_length=0.5)
    titles = [figure.title for figure in trajectories(result(one)).figures]
    assert titles[0] == "States"
    better = {3: solutions[0].objective}
    titles = [figure.title for figure in trajectories(result(one, better_motions=better)).figures]
    assert titles[0] == f"States, motion of the program (effort {number(solutions[0].objective, 6)} s)"
    (short,) = in_short(result(one, better_motions=better), 340)
    assert short.title.endswith(titles[0].removeprefix("States"))
    failed = record(replace(solutions[0], status=Status.ITERATION_LIMIT), pole_length=0.5)
    failed.ok = False
    section = trajectories(result(failed))
    assert [figure.title.split(", ")[1] for figure in section.figures] == [
        "last iterate of a program that is not solved"
    ] * len(section.figures)
    assert programs(result(failed)).facts == (("programs", "1"), ("iteration_limit", "1"))


def test_costates_of_a_maximised_objective_are_of_the_minimised_cost(solutions):
    for sign, quantity in ((1.0, "objective"), (-1.0, "minimised cost, minus the objective,")):
        section = trajectories(result(record(solutions[0]), sign=sign))
        (costates,) = [figure for figure in section.figures if figure.title == "Costates"]
        assert costates.note.startswith(f"Derivatives of the {quantity} by the states")


def test_several_programs_are_chosen_from(solutions):
    records = [record(s, pole_length=at) for s, at in zip(solutions, (0.5, 0.6), strict=True)]
    figure = trajectories(result(*records)).figures[0]
    (choice,) = figure.choices
    assert [option.split(" (")[0] for option in choice.options] == ["1: pole_length 0.5 m", "2: pole_length 0.6 m"]
    assert set(figure.variants) == {(0,), (1,)}


def test_the_share_of_time_at_a_limit_is_that_of_the_control_itself(solutions):
    (row,) = [row for row in activity(solutions[1]) if row[0] == "force"]
    phase = solutions[1].phase
    weights = phase.mesh.weights / phase.mesh.weights.sum()
    at_low = weights[phase.values["force"] < -12.0 + 1e-3].sum()
    assert row[2] == pytest.approx(at_low)
    assert 0.0 < row[2] < 0.5
    assert [row for row in activity(solutions[0]) if row[0] == "force"] == []  # 20 N are never needed


def test_outcomes_parameters_and_messages_of_all_programs_are_listed(solutions):
    section = programs(result(*(record(s, pole_length=at) for s, at in zip(solutions, (0.5, 0.6), strict=True))))
    _, outcomes, parameters = section.tables
    assert [row[3] for row in outcomes.rows] == ["solved", "solved"]
    assert [row[5] for row in outcomes.rows] == [s.iterations for s in solutions]
    # the longer the time the less the effort: it is at its upper bound, and gives more when that is raised
    assert [row[1] for row in parameters.rows] == ["duration [ms]"] * 2
    assert parameters.rows[0][2:5] == pytest.approx((2200.0, 1000.0, 2200.0))
    multiplier = solutions[0].parameter_multipliers["duration"]
    assert parameters.rows[0][6] == pytest.approx(1e-3 * multiplier, rel=1e-3)
    assert {row[5] for row in parameters.rows} == {"upper bound"}
    assert section.figures == ()  # the answer alone: how it was found is a part near the end
    section = solving(result(*(record(s, pole_length=at) for s, at in zip(solutions, (0.5, 0.6), strict=True))))
    assert [figure.title for figure in section.figures] == ["Mesh and error by interval", "Progress of the solver"]
    bars = section.figures[0].plot["data"][0]
    assert len(bars["x"]) == 30
    assert np.max(bars["y"]) == pytest.approx(solutions[0].error_estimate)


def test_a_multiplier_below_the_errors_of_the_solver_is_zero(solutions):
    solution = replace(solutions[0], parameter_multipliers={"duration": 1e-9, "pole_length": 0.0})
    *_, parameters = programs(result(record(solution))).tables
    assert parameters.rows[0][-1] == 0.0


def test_a_program_without_a_result_is_reported_with_its_reason(solutions):
    section = programs(result(record(solutions[0], pole_length=0.5), record(None, pole_length=0.6)))
    assert section.tables[0].rows[1][3] == "timeout"
    assert any("took longer" in text for _, text in section.details)
    assert any("1 program of 2 failed" in finding for finding in section.findings)


def test_hints_for_the_author_of_the_model_are_folded(solutions):
    hint, warning = "nonsmooth_model: the equation has fmax", "singular_arc: from 0 to 1 s the cost does not bend"
    section = programs(result(record(replace(solutions[0], warnings=(hint, warning)))))
    assert f"{warning}." in section.findings
    assert hint not in section.findings
    assert ("How the model is written", hint) in section.details


def test_warnings_of_one_kind_are_one_finding_with_the_others_folded(solutions):
    warnings = tuple(f"oscillating_control: u{k} has 7 pulses" for k in range(20))
    section = programs(result(record(replace(solutions[0], warnings=("singular_arc: 0 to 1 s", *warnings)))))
    assert section.findings == ("singular_arc: 0 to 1 s.", f"{warnings[0]} (19 more of this kind).")
    assert ("19 more warnings", "\n".join(warnings[1:])) in section.details


@pytest.mark.parametrize(("error", "words"), [(1e-3, "different local optima"), (0.1, "the same optimum")])
def test_starts_that_differ_less_than_the_error_are_one_optimum(solutions, error, words):
    records = [record(replace(solutions[0], objective=size * solutions[0].objective)) for size in (1.0, 1.0005)]
    for one, size in zip(records, (1.0, 1.0005), strict=True):
        one.figures |= {"program(objective)": size * solutions[0].objective, "program(error_estimate)": error}
    assert any(words in finding for finding in programs(result(*records)).findings)


def test_different_local_optima_of_several_starts_are_reported(solutions):
    records = []
    for solution in (solutions[0], replace(solutions[0], objective=1.2 * solutions[0].objective)):
        one = record(solution, pole_length=0.5)
        one.figures["optimum(pole_length)"] = 0.5
        one.figures["program(objective)"] = solution.objective
        records.append(one)
    assert any("different local optima" in finding for finding in programs(result(*records)).findings)


def test_the_best_of_what_is_maximised_is_the_largest(solutions):
    records = [record(s, pole_length=at) for s, at in zip(solutions, (0.5, 0.6), strict=True)]
    least, largest = sorted(s.objective for s in solutions)
    assert programs(result(*records)).facts[2] == ("best objective", f"{number(least, 6)} s")
    assert programs(result(*records, sign=-1.0)).facts[2] == ("best objective", f"{number(largest, 6)} s")


def test_a_sweep_is_answered_by_the_best_program_of_each_of_its_points(solutions):
    worse = replace(solutions[0], objective=2.0 * solutions[0].objective)
    records = [
        record(worse, pole_length=0.5),
        record(solutions[1], pole_length=0.6),
        record(solutions[0], pole_length=0.5),
    ]
    section = programs(result(*records))
    table = section.tables[0]
    assert table.columns == ("pole_length [m]", "objective [s]", "duration [ms]", "program")
    assert [row[0] for row in table.rows] == [0.6, 0.5]
    assert [row[3] for row in table.rows] == [2, 3]
    assert table.rows[1][1:3] == (solutions[0].objective, solutions[0].parameters["duration"])
    assert section.tables[1].marked == {1, 2}


def test_the_best_program_is_drawn_first_and_failed_ones_last_and_marked(solutions):
    failed = record(solutions[0], pole_length=0.5)
    failed.ok, failed.status = False, "locally_infeasible"
    section = trajectories(result(failed, record(solutions[1], pole_length=0.6), record(solutions[0], pole_length=0.5)))
    (choice,) = section.figures[0].choices
    assert [option.split(":")[0] for option in choice.options] == ["3", "2", "1"]
    assert section.findings == ("Program 1 has no result (locally_infeasible): its last iterate is drawn.",)


def test_the_structure_of_the_first_program_is_a_map_with_names(solutions):
    program = Program(CartPole().trajectory_problem({}), Options(intervals=30))
    first = record(solutions[0])
    first.sparsity = program.sparsity
    figures = {figure.title: figure for figure in solving(result(first)).figures}
    plot = figures["Structure of the program"].plot

    jacobian, hessian = plot["data"]
    assert max(*jacobian["z"].shape, *hessian["z"].shape) <= 64
    assert np.nanmax(jacobian["z"]) <= 1.0
    ticks = plot["layout"]["yaxis"]
    assert ticks["ticktext"][0] == "rates"
    assert ticks["tickvals"][0] == 0
    assert plot["layout"]["xaxis"]["ticktext"][0] == "points of the motion"
    assert "Structure of the program" not in [
        f.title for f in getattr(solving(result(record(solutions[0]))), "figures", ())
    ]


def detour_of(duration):
    """A point that goes from (0, 0) over (1, 1) to (2, 0), in two phases of the `duration` (s) that follow each
    other."""
    x, y, u, w = (ca.SX.sym(name) for name in "xyuw")
    point = System.from_expressions(
        "point", states=[(Variable("x", "m"), x, u), (Variable("y", "m"), y, w)],
        controls=[(Variable("u", "m/s"), u), (Variable("w", "m/s"), w)],
    )  # fmt: skip
    effort = {"effort": Integral(lambda v: v["u"] ** 2 + v["w"] ** 2)}
    up = Phase(point, name="up", tf=duration, initial={"x": 0, "y": 0}, final={"x": 1, "y": 1}, integrals=effort)
    down = Phase(point, name="down", t0=None, tf=2.0 * duration, final={"x": 2, "y": 0}, integrals=effort)
    problem = TrajectoryProblem(
        [up, down],
        cost=lambda e: e.phase["up"].integral["effort"] + e.phase["down"].integral["effort"],
        constraints={"link": linked(up, down)},
    )
    return solve(problem, Options(intervals=10))


@pytest.fixture(scope="module")
def detour():
    return detour_of(1.0)


@pytest.mark.parametrize(("duration", "unit", "size"), [(0.05, "s", 1.0), (0.02, "ms", 1e-3), (4e-5, "µs", 1e-6)])
def test_the_time_of_short_motions_is_in_a_smaller_unit(duration, unit, size):
    solution = detour_of(duration)
    _, *figures = trajectories(result(record(solution))).figures
    (errors,) = (f for f in solving(result(record(solution))).figures if f.title == "Mesh and error by interval")
    (beside_answer,) = in_short(result(record(solution)), 340)
    for figure in (*figures, errors, beside_answer):
        assert figure.plot["layout"]["xaxis"]["title"]["text"] == f"time [{unit}]"
        last = max(float(np.max(trace["x"])) for trace in figure.plot["data"])
        assert last == pytest.approx(2.0 * duration / size, rel=0.06)  # bars have their middle there
    states, first_bars = figures[0], errors.plot["data"][0]
    assert states.plot["layout"]["shapes"][0]["x0"] == pytest.approx(duration / size)
    assert states.note.endswith(f"down from {duration / size:g} {unit}.")
    assert first_bars["width"] == pytest.approx(np.full(10, 0.1 * duration / size))
    assert first_bars["hovertemplate"].startswith(f"%{{x:.4~g}} {unit}, ")
    section = trajectories(result(record(solution, start=1.0), record(solution, start=2.0)))
    variant = section.figures[1].variants[1,]
    assert variant["layout"]["xaxis"]["title"]["text"] == f"time [{unit}]"
    assert np.array_equal(variant["data"][0]["x"], states.plot["data"][0]["x"])


def test_phases_that_follow_each_other_are_one_figure_with_their_changes_marked(detour):
    section = trajectories(result(record(detour)))
    titles = [figure.title for figure in section.figures]
    assert titles == ["Path of x and y", "States", "Controls", "Costates"]
    states = section.figures[1].plot
    (change,) = states["layout"]["shapes"]
    assert change["x0"] == pytest.approx(1.0)
    curves = [t for t in states["data"] if t["mode"] == "lines" and t["yaxis"] == "y"]
    assert [float(t["x"][-1]) for t in curves] == pytest.approx([1.0, 2.0])
    assert "down from 1 s" in section.figures[1].note


def test_limits_of_a_state_are_those_of_all_phases_where_one_of_them_reaches_one(detour):
    limits = {"up": (-0.5, 3.0), "down": (0.0, 2.0)}
    phases = {name: replace(p, bounds={**p.bounds, "x": limits[name]}) for name, p in detour.phases.items()}
    limited = replace(detour, phases=phases)
    states = trajectories(result(record(limited))).figures[1].plot
    first_row = [trace for trace in states["data"] if trace["yaxis"] == "y"]
    dashed = [trace for trace in first_row if trace["mode"] == "lines" and trace["line"].get("dash") == "dash"]
    assert [tuple(trace["y"]) for trace in dashed] == [(-0.5, -0.5), (3.0, 3.0), (0.0, 0.0), (2.0, 2.0)]
    assert [tuple(trace["x"]) for trace in dashed] == [(0.0, 1.0)] * 2 + [(1.0, 2.0)] * 2

    (up, down) = activity(limited)
    assert up == ("x", "up", 0.0, 0.0)
    assert down[:3] == ("x", "down", 0.0)
    assert down[3] > 0.0


def test_the_path_lies_beside_its_obstacles(detour):
    obstacles = [{"x": 1.0, "y": 0.4, "radius": 0.2, "name": "tree"}, {"corners": [[0, 1], [0.5, 1], [0.5, 1.5]]}]
    figure = trajectories(result(record(detour)), path=["x", "y"], obstacles=obstacles).figures[0]
    circle, polygon, first, _, second, _ = figure.plot["data"]
    assert np.hypot(circle["x"] - 1.0, circle["y"] - 0.4) == pytest.approx(0.2)
    assert list(polygon["x"]) == [0, 0.5, 0.5, 0]
    assert (first["name"], second["name"]) == ("up", "down")
    assert (second["x"][0], second["y"][0]) == pytest.approx((1.0, 1.0), abs=1e-6)
    assert figure.plot["layout"]["yaxis"]["scaleanchor"] == "x"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"path": ["x"]}, "path names two variables"),
        ({"path": ["x", "z"]}, "no phase has a variable 'z'"),
        ({"obstacles": [{"x": 1.0}]}, "x, y and radius, or corners"),
        ({"obstacles": [{"corners": [[0, 1]]}]}, "three or more pairs"),
    ],
)
def test_a_path_or_obstacle_that_is_none_is_refused(detour, settings, message):
    with pytest.raises(ValueError, match=message):
        trajectories(result(record(detour)), **settings)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_best_motion_of_several_programs_stands_beside_a_number_that_is_worse(sign):
    """Objectives are minimised with the sign 1, maximised with -1."""
    space = SimpleNamespace(values=lambda x: {"length": x[0]})
    problem = SimpleNamespace(objectives=[SimpleNamespace(sign=sign)], space=space)
    outcomes = SimpleNamespace(X=np.array([[1.0], [2.0]]), objectives=np.array([[5.0], [5.0]]))
    several = [
        SimpleNamespace(ok=True, optimum={"length": length}, figures={"program(objective)": sign * minimised})
        for length, minimised in ((1.0, 4.0), (1.0, 3.0), (1.0, 3.5), (2.0, 6.0))
    ]
    assert better_motions(several, problem, outcomes, [0, 1]) == {0: sign * 3.0}
