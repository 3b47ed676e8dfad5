"""Refinement of the mesh. Specification: direct_collocation, sections 7 and 13; Patterson, Hager, Rao 2015."""

import sys
from dataclasses import replace

import benchmark_problems
import numpy as np
import pytest

from designopt.collocation import Mesh, Options, Program, Refinement, Solution, Status, TrajectoryProblem, solve
from designopt.collocation.solve.refine import finer_mesh, refine, too_coarse, with_errors
from designopt.collocation.statement.mesh import hermite_simpson, radau, trapezoidal


def test_an_interval_is_divided_by_the_ratio_of_its_error_to_the_tolerance() -> None:
    """n = clip(ceil((e / tol)^(1 / (d + 1))), 2, 5) parts; intervals that are fine enough stay as they are."""
    mesh = Mesh.uniform(radau(3), 5)
    errors = 1e-6 * np.array([0.5, 1.0, 1.1, 50.0, 1e9])
    finer = finer_mesh(mesh, errors, Refinement(1e-6), radau(3))
    parts = [
        int(((finer.nodes >= a) & (finer.nodes < b)).sum()) for a, b in zip(mesh.nodes, mesh.nodes[1:], strict=False)
    ]
    assert parts == [1, 1, 2, 3, 5]  # 50^(1/4) = 2.66
    assert set(finer.schemes) == {radau(3)}
    assert set(mesh.nodes) <= set(finer.nodes)


@pytest.mark.parametrize(("scheme", "parts"), [(trapezoidal(), 4), (hermite_simpson(), 3), (radau(5), 2)])
def test_a_scheme_of_higher_order_needs_fewer_parts(scheme: object, parts: int) -> None:
    mesh = Mesh.uniform(scheme, 1)  # type: ignore[arg-type]
    assert len(finer_mesh(mesh, np.array([50e-6]), Refinement(1e-6), scheme)) == parts  # type: ignore[arg-type]


def test_hp_raises_the_degree_while_it_may_and_then_divides_with_the_least_degree() -> None:
    """P = ceil(log(e / tol) / log d): 2 for 8 times the tolerance at degree 3."""
    mesh = Mesh.uniform(radau(3), 3)
    errors = 1e-6 * np.array([0.5, 8.0, 1e4])
    finer = finer_mesh(mesh, errors, Refinement(1e-6, method="hp"), radau(3))
    assert [s.degree for s in finer.schemes] == [3, 5, 3, 3, 3, 3]
    bounded = finer_mesh(mesh, errors, Refinement(1e-6, method="hp", max_degree=4), radau(3))
    assert [s.degree for s in bounded.schemes] == [3, 3, 3, 3, 3, 3, 3]


@pytest.mark.parametrize("method", ["split", "hp"])
def test_the_cart_pole_is_refined_to_a_millionth_in_six_rounds(method: str) -> None:
    """Specification: 4 rounds, 92 intervals from 10 (measured: the same)."""
    fine = Refinement(1e-6, method=method)  # type: ignore[arg-type]
    solution = solve(benchmark_problems.cart_pole(), Options(degree=3, intervals=10, refine=fine))
    assert solution.status is Status.SOLVED
    assert solution.error_estimate <= 1e-6
    assert len(solution.rounds) <= 6
    assert solution.rounds[0].intervals == 10
    assert solution.rounds[-1].intervals == len(solution.phase.mesh) <= 92
    assert [r.error for r in solution.rounds] == sorted((r.error for r in solution.rounds), reverse=True)
    assert solution.objective == pytest.approx(58.80766746, rel=1e-7)
    assert solution.phase.resimulation_error < 3e-6


@pytest.mark.parametrize("method", ["split", "hp"])
def test_the_hyper_sensitive_problem_is_refined_to_a_millionth_where_it_is_fast(method: str) -> None:
    """Specification: 7 rounds, 86 intervals, at most 10 and 120; T = 1000, from 10 intervals."""
    problem = benchmark_problems.hyper_sensitive(1000.0)
    options = Options(degree=3, intervals=10, refine=Refinement(1e-6, method=method))  # type: ignore[arg-type]
    solution = solve(problem, options)
    assert solution.status is Status.SOLVED
    assert len(solution.rounds) <= 10
    assert solution.rounds[-1].intervals <= 120
    # the middle, where nothing happens, keeps the intervals of the first mesh
    assert solution.phase.mesh.widths.max() == pytest.approx(0.1)
    assert solution.phase.mesh.widths.min() < 1e-3
    # an error of 1e-6 in the states leaves one of the same size in the cost
    assert solution.objective == pytest.approx(benchmark_problems.hyper_sensitive_cost(), rel=1e-6)


@pytest.mark.parametrize("method", ["split", "hp"])
def test_a_fine_tolerance_gives_the_analytic_optimum_to_nine_digits(method: str) -> None:
    """T = 10000 s from ten equal intervals; the cost converges with twice the order of the states."""
    fine = Refinement(1e-8, method=method, rounds=12)  # type: ignore[arg-type]
    solution = solve(benchmark_problems.hyper_sensitive(), Options(intervals=10, refine=fine))
    assert solution.status is Status.SOLVED
    assert solution.objective == pytest.approx(benchmark_problems.hyper_sensitive_cost(), rel=1e-9)
    assert solution.phase.segment_errors.max() < 1e-8


def test_a_round_that_is_stopped_is_the_result(stopped_at_second: list[Program]) -> None:
    solution = solve(benchmark_problems.cart_pole(), Options(degree=3, intervals=10, refine=Refinement(1e-6)))
    assert solution.status is Status.CANCELLED
    assert len(solution.phase.mesh) > 10  # the last iterate is kept
    assert len(stopped_at_second) == 2


def test_only_the_coarse_intervals_of_each_phase_are_refined() -> None:
    """A block moves from rest to rest, then a pole swings up on a cart; only the second is not a cubic."""
    block, pole = benchmark_problems.block_move().phases[0], benchmark_problems.cart_pole().phases[0]
    phases = [replace(block, name="block"), replace(pole, name="pole", t0=None, tf=3.0)]
    problem = TrajectoryProblem(
        phases, cost=lambda e: e.phase["block"].integral["effort"] + e.phase["pole"].integral["effort"]
    )
    solution = solve(problem, Options(degree=3, intervals=10, refine=Refinement(1e-5)))
    assert solution.status is Status.SOLVED
    assert solution.objective == pytest.approx(12.0 + 58.80766746, rel=1e-5)
    assert len(solution.phases["block"].mesh) == 10
    assert len(solution.phases["pole"].mesh) > 40
    assert solution.rounds[-1].intervals == sum(len(phase.mesh) for phase in solution.phases.values())
    assert solution.error_estimate == solution.phases["pole"].error.max() <= 1e-5
    # each phase is simulated from its own initial states
    assert solution.phases["block"].resimulation_error < 1e-9
    assert 1e-9 < solution.phases["pole"].resimulation_error < 1e-4


def test_a_round_begins_with_the_solution_before_it() -> None:
    solution = solve(
        benchmark_problems.hyper_sensitive(1000.0), Options(degree=3, intervals=10, refine=Refinement(1e-6))
    )
    assert solution.rounds[0].iterations >= 9
    assert all(r.iterations <= 7 for r in solution.rounds[1:])
    assert solution.rounds[-1].iterations <= 2


def test_refinement_at_its_limit_of_rounds_has_a_usable_result_and_reports_the_limit() -> None:
    problem = benchmark_problems.cart_pole()
    solution = solve(problem, Options(degree=3, intervals=10, refine=Refinement(1e-6, rounds=1), check=False))
    assert solution.status is Status.MESH_UNRESOLVED
    assert solution.success
    assert len(solution.rounds) == 2
    assert f"{solution.error_estimate:.1e} after 1 rounds" in solution.message


def test_refinement_without_progress_ends_and_names_the_times() -> None:
    """The control switches at 1 s and the mesh never has a node there: what is left is the solver's own accuracy."""
    options = Options(degree=3, intervals=10, refine=Refinement(1e-13), check=False)
    solution = solve(benchmark_problems.double_integrator(), options)
    assert solution.status is Status.REFINEMENT_STALLED
    assert solution.success
    assert solution.error_estimate > 1e-13
    errors = [r.error for r in solution.rounds]
    assert min(errors[-2:]) > 0.8 * min(errors[:-2])
    assert solution.error_estimate == min(errors)
    assert "; ".join(too_coarse(solution.phases, 1e-13)) in solution.message


def test_neighbouring_intervals_are_named_together() -> None:
    solution = with_errors(
        benchmark_problems.cart_pole(), Program(benchmark_problems.cart_pole(), Options(intervals=4)).solve()
    )
    phase = solution.phase
    phase.error[:] = [1.0, 1.0, 0.0, 1.0]
    assert too_coarse({"motion": phase}, 1e-3) == ["motion 0 to 1 s", "motion 1.5 to 2 s"]


def test_a_round_that_fails_leaves_the_solution_before_it() -> None:
    problem = benchmark_problems.cart_pole()
    first = Program(problem, Options(degree=3, intervals=10)).solve()
    hurried = Program(problem, Options(degree=3, intervals=10, max_iterations=2))
    solution = refine(hurried, first, Refinement(1e-6))
    assert solution.status is Status.MESH_UNRESOLVED
    assert "round 1 with" in solution.message
    assert Status.ITERATION_LIMIT.value in solution.message
    assert solution.objective == first.objective
    assert len(solution.rounds) == 1


def test_the_automatic_scheme_of_a_refinement_is_radau_and_of_a_fine_one_of_degree_5() -> None:
    problem = benchmark_problems.cart_pole()
    assert Options(refine=Refinement(1e-5)).scheme_for(problem).degree == 3
    assert Options(refine=Refinement(1e-7)).scheme_for(problem).degree == 5


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"tolerance": 0.0}, r"refine\.tolerance must be positive and finite, not 0\.0"),
        ({"rounds": 0}, r"refine\.rounds must be at least 1, not 0"),
        ({"method": "p"}, r"refine\.method must be split or hp, not 'p'"),
        ({"max_degree": 12}, r"refine\.max_degree must be from 1 to 9, not 12"),
    ],
)
def test_settings_that_make_no_sense_are_refused(bad: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Refinement(**bad)  # type: ignore[arg-type]


def test_refinement_gives_up_after_two_rounds_without_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    module, estimated = sys.modules[finer_mesh.__module__], with_errors
    monkeypatch.setattr(
        module, "with_errors", lambda problem, solution: replace(estimated(problem, solution), error_estimate=1e-3)
    )
    solution = solve(benchmark_problems.double_integrator(), Options(intervals=4, refine=Refinement(1e-9), check=False))
    assert solution.status is Status.REFINEMENT_STALLED
    assert len(solution.rounds) == 1 + 2


def test_a_stalled_refinement_names_three_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    module, estimated = sys.modules[finer_mesh.__module__], with_errors

    def alternating(problem: TrajectoryProblem, solution: Solution) -> Solution:
        (name, phase), *_ = estimated(problem, solution).phases.items()
        coarse = replace(phase, error=np.where(np.arange(len(phase.mesh)) % 2, 0.0, 1e-3))
        return replace(solution, phases={name: coarse}, error_estimate=1e-3)

    monkeypatch.setattr(module, "with_errors", alternating)
    solution = solve(
        benchmark_problems.double_integrator(), Options(intervals=10, refine=Refinement(1e-5), check=False)
    )
    assert solution.status is Status.REFINEMENT_STALLED
    where = solution.message.split("above the tolerance in ")[1]
    assert where.startswith(f"{solution.phase.name} 0 to 0.2 s; {solution.phase.name} 0.4 to 0.6 s; ")
    assert where.endswith(" and 2 more.")


def test_a_pulse_between_all_points_is_found_and_resolved() -> None:
    problem = benchmark_problems.struck(0.527)
    blind = solve(problem, Options(scheme="radau", intervals=10))
    solution = solve(problem, Options(intervals=10, refine=Refinement(1e-5)))
    fine = Program(problem, Options(scheme="radau", intervals=2000)).solve()

    assert blind.error_estimate < 1e-5
    assert "re-simulation does not agree with the estimate" in blind.message
    assert abs(blind.objective / fine.objective - 1.0) > 0.1
    assert solution.status is Status.SOLVED
    assert solution.objective == pytest.approx(fine.objective, rel=1e-5)
    assert len(solution.phase.mesh) < 100


def test_refinement_goes_on_where_the_simulation_of_an_interval_does_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """An estimate that sees nothing does not end it."""
    module = sys.modules[finer_mesh.__module__]
    monkeypatch.setattr(module, "interval_errors", lambda phase, solution, parameters: np.zeros(len(solution.mesh)))
    solution = solve(benchmark_problems.cart_pole(), Options(degree=3, intervals=10, refine=Refinement(1e-6)))

    assert solution.status is Status.SOLVED
    assert len(solution.rounds) > 1
    assert solution.rounds[0].error > 1e-3
    assert solution.phase.segment_errors.max() <= 1e-5


def test_a_round_that_fails_is_tried_again_in_other_ways_which_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = Program.attempt, []

    def failing(self: Program, *arguments: object, **named: object) -> Solution:
        calls.append(dict(self.options.ipopt))
        solution = real(self, *arguments, **named)  # type: ignore[arg-type]
        return replace(solution, status=Status.ITERATION_LIMIT) if len(calls) in (2, 3, 4) else solution

    monkeypatch.setattr(Program, "attempt", failing)
    solution = solve(benchmark_problems.cart_pole(), Options(degree=3, intervals=20, refine=Refinement(1e-4)))

    assert solution.status is Status.SOLVED
    assert [a.way for a in solution.attempts] == [
        "round 1 as stated", "round 1 from its end", "round 1 with a small barrier", "round 1 with an adaptive barrier"
    ]  # fmt: skip
    assert calls[:5] == [{}, {}, {}, {"mu_init": 1e-3}, {"mu_strategy": "adaptive"}]
    assert solution.attempts[-1].status is Status.SOLVED


def test_a_refinement_may_begin_with_a_mesh_of_its_own() -> None:
    problem = benchmark_problems.hyper_sensitive()
    mesh = Mesh.at(radau(5), benchmark_problems.hyper_sensitive_nodes(60))
    solution = solve(problem, Options(degree=5, refine=Refinement(1e-8)), meshes=[mesh])

    assert solution.rounds[0].intervals == 60
    assert len(solution.rounds) <= 4  # from ten equal intervals it takes more
    assert solution.objective == pytest.approx(benchmark_problems.hyper_sensitive_cost(), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [float("inf"), 5000.0])
@pytest.mark.parametrize(("method", "intervals"), [("split", 20), ("hp", 50)])
def test_four_narrow_peaks_are_resolved_by_both_methods(limit: float, method: str, intervals: int) -> None:
    fine = Refinement(1e-6, method=method)  # type: ignore[arg-type]
    solution = solve(benchmark_problems.four_peaks(limit), Options(intervals=intervals, degree=3, refine=fine))

    assert solution.status is Status.SOLVED
    assert solution.objective == pytest.approx(2030.8546, rel=1e-6)  # Betts: 2030.85609
    assert solution.phase.segment_errors.max() <= 1e-5
