"""Contact and friction found by the program: optima in closed form, what the chain tells, refusals."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from benchmark_problems import rest_to_rest, system

from designopt.collocation import (
    Complementary,
    Complemented,
    Integral,
    Options,
    Phase,
    ProblemError,
    Program,
    Refinement,
    Status,
    TrajectoryProblem,
    solve,
    solve_complementary,
    solve_design,
    with_margins,
)
from designopt.collocation.contact import solve_complementary as contact

FRICTION = 24.0
STICKING = {
    "left": Complementary(lambda v: v["slip"] + v["v"], lambda v: v["forth"], sizes=(1.0, FRICTION)),
    "right": Complementary(lambda v: v["slip"] - v["v"], lambda v: v["back"], sizes=(1.0, FRICTION)),
    "stick": Complementary(lambda v: FRICTION - v["forth"] - v["back"], lambda v: v["slip"], sizes=(FRICTION, 1.0)),
}
GROUND = {"ground": Complementary(lambda v: v["y"], lambda v: v["support"], sizes=(1.0, 10.0))}


def rough_move() -> TrajectoryProblem:
    """A block with Coulomb's friction m moves by 1 from rest to rest within 1 s with the least int u^2. Moving for a
    time T with u = m + (6 - 12 t/T)/T^2 costs 12/T^3 + m^2 T, sticking nothing: T = sqrt(6/m), 384 for m = 24
    (friction as in Stewart, Trinkle, Int. J. Numer. Methods Eng. 39 (1996) 2673)."""
    rough = system(
        "rough",
        {"x": lambda s: s["v"], "v": lambda s: s["u"] + s["forth"] - s["back"]},
        ["u", "forth", "back", "slip"],
        bounds={"u": (-100.0, 100.0)},
    )
    return rest_to_rest(rough)


def hop() -> TrajectoryProblem:
    """A mass falls from 0.75, stays on the ground, and is thrust up to 1 at 2 s with the least int u^2 under gravity 6.
    With the ground's help free, thrust over D costs 3 (1 + 3 D^2)^2/D^3: least for D = 1, then 48."""
    body = system(
        "body",
        {"y": lambda s: s["v"], "v": lambda s: s["u"] + s["support"] - 6.0},
        ["u", "support"],
        bounds={"u": (0.0, 50.0)},
    )
    phase = Phase(
        body,
        tf=2.0,
        initial={"y": 0.75, "v": 0.0},
        final={"y": 1.0},
        integrals={"effort": Integral(lambda v: v["u"] ** 2)},
    )
    return TrajectoryProblem([phase], cost=lambda e: e.integral["effort"])


@pytest.fixture(scope="module")
def stuck() -> Complemented:
    return solve_complementary(rough_move(), STICKING, Options(intervals=40))


def test_a_block_moves_for_half_of_the_time_and_sticks_for_the_other(stuck: Complemented) -> None:
    assert stuck.success
    assert stuck.solution.objective == pytest.approx(384.0, rel=3e-4)
    phase = stuck.solution.phase
    moves = phase.values["v"] > 1e-4
    assert moves.sum() == pytest.approx(0.5 * 40, abs=1)  # some half of the time, whichever
    assert np.abs(phase.values["u"][1:][~moves[1:] & ~moves[:-1]]).max() < 1e-2


def test_a_finer_mesh_is_nearer_to_the_optimum(stuck: Complemented) -> None:
    finer = solve_complementary(rough_move(), STICKING, Options(intervals=80))

    assert finer.success
    assert abs(finer.solution.objective - 384.0) < 0.5 * abs(stuck.solution.objective - 384.0)


def test_a_fall_a_rest_and_a_jump_are_found_in_their_order() -> None:
    found = solve_complementary(hop(), GROUND, Options(intervals=50))

    assert found.success
    # of order one, with an impact; optima of 48.2 to 51.1 were found on 30 to 120 intervals with several linear solvers
    assert 0.98 * 48.0 < found.solution.objective < 1.08 * 48.0
    y = found.solution.interpolate([0.25, 0.7, 0.9, 1.5, 2.0])["y"]
    assert y[0] == pytest.approx(0.75 - 3.0 * 0.25**2, abs=0.1)
    assert np.abs(y[1:3]).max() < 0.05
    assert y[4] == pytest.approx(1.0)


def test_the_chain_tells_every_solve_and_the_products_that_are_left(stuck: Complemented) -> None:
    assert [step.relaxation for step in stuck.chain if step.status.success][-1] == pytest.approx(1e-7)
    assert all(step.iterations > 0 for step in stuck.chain)
    objectives = [step.objective for step in stuck.chain if step.status.success]
    assert np.all(np.diff(objectives) > -1e-3 * 384.0)  # each relaxes the next
    assert stuck.products.keys() == STICKING.keys()
    for name, pair in STICKING.items():
        path = stuck.solution.phase.path
        product = path[f"{name}: first"] * path[f"{name}: second"]
        assert stuck.products[name] == pytest.approx(product.max() * pair.sizes[0] * pair.sizes[1])
        assert product.max() < 1.2e-7
        assert stuck.overlaps[name] < 1e-4


def test_given_relaxations_end_where_they_say() -> None:
    found = solve_complementary(rough_move(), STICKING, Options(intervals=20), relaxations=(1.0, 0.1))

    assert [step.relaxation for step in found.chain if step.status.success][-1] == 0.1
    assert found.products["stick"] > 0.1


def test_a_step_that_fails_is_divided_three_times_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact, "relaxed_problem", lambda problem, pairs, relaxation: relaxation)
    asked = []

    class Fails:
        """Solves all that is above 0.0101: each middle, the step itself never."""

        options = Options(persistent=False)

        def solve(self, relaxation: float, *args: Any, **more: Any) -> Any:
            asked.append(relaxation)
            good = relaxation > 0.0101
            status = Status.SOLVED if good else Status.LOCALLY_INFEASIBLE
            return SimpleNamespace(success=good, status=status, iterations=1, objective=0.0)

    found = contact.relaxed_chain(Fails(), rough_move(), {}, [1.0, 0.01], None)

    assert not found.reached
    assert asked == pytest.approx([1.0, 0.01, 0.1, 0.01, 10.0**-1.5, 0.01, 10.0**-1.75, 0.01])


def test_what_has_no_solution_is_a_result_with_its_status() -> None:
    problem = hop()
    weak = TrajectoryProblem(
        [Phase(**{**vars(problem.phases[0]), "bounds": {"u": (0.0, 1.0)}, "final": {"y": 9.0}})], cost=problem.cost
    )
    found = solve_complementary(weak, GROUND, Options(intervals=10, persistent=False))

    assert not found.success
    assert found.solution.status is not Status.SOLVED
    assert len(found.chain) == 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"scheme": "hermite_simpson"}, "contacts need radau of degree 1"),
        ({"degree": 3}, "contacts need radau of degree 1"),
        ({"refine": Refinement()}, "a mesh is not refined while contacts change"),
    ],
)
def test_schemes_that_bounce_and_refinement_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ProblemError, match=text):
        solve_complementary(hop(), GROUND, Options(**options))


def test_wrong_names_and_numbers_are_refused() -> None:
    pair = GROUND["ground"]
    with pytest.raises(ProblemError, match="there is no phase 'flight'; known: motion"):
        solve_complementary(hop(), {"ground": Complementary(pair.first, pair.second, phase="flight")})
    with pytest.raises(ProblemError, match="give positive numbers that fall"):
        solve_complementary(hop(), GROUND, relaxations=(0.1, 1.0))
    with pytest.raises(ValueError, match="give two positive numbers"):
        Complementary(pair.first, pair.second, sizes=(1.0, 0.0))


def test_pairs_that_a_problem_states_itself_are_solved_for(stuck: Complemented) -> None:
    stated = replace(rough_move(), complementary=STICKING)

    assert solve_complementary(stated, options=Options(intervals=40)).solution.objective == pytest.approx(
        stuck.solution.objective, rel=1e-6
    )
    assert solve_design(stated, {}, Options(intervals=40)).objective == pytest.approx(
        stuck.solution.objective, rel=1e-6
    )
    with pytest.raises(ProblemError, match="use solve_complementary, or a study"):
        solve(stated)
    with pytest.raises(ProblemError, match="contacts open and close elsewhere"):
        with_margins(stated, {"motion.initial.x": 0.1}, {"x": 1.0})


@pytest.mark.parametrize("sizes", [(1e200, 1e200), 3.0, ("a", 1.0), (1.0,), None])
def test_sizes_are_two_numbers_with_a_product(sizes: Any) -> None:
    with pytest.raises(ValueError, match="give two positive numbers"):
        Complementary(lambda v: v["y"], lambda v: v["support"], sizes=sizes)


@pytest.mark.parametrize(
    ("pairs", "relaxations", "text"),
    [
        ({"ground": (lambda v: v["y"], lambda v: v["support"])}, (1.0,), "complementary.ground: is a tuple, not Compl"),
        (GROUND, ("a",), "give positive numbers that fall"),
        (GROUND, (np.inf, 1.0), "give positive numbers that fall"),
        (GROUND, None, "give positive numbers that fall"),
    ],
)
def test_what_is_no_pair_and_no_relaxation_is_refused(pairs: Any, relaxations: Any, text: str) -> None:
    with pytest.raises(ProblemError, match=text):
        solve_complementary(hop(), pairs, relaxations=relaxations)


def test_a_request_to_stop_ends_the_chain_and_all_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    own, calls = Program.solve, list[Status]()

    def solved(program: Program, *given: Any, **more: Any) -> Any:
        found = own(program, *given, **more)
        calls.append(Status.CANCELLED if len(calls) == 3 else found.status)
        return replace(found, status=calls[-1])

    monkeypatch.setattr(Program, "solve", solved)
    found = solve_complementary(rough_move(), STICKING, Options(intervals=10, starts=3))

    assert calls == [Status.SOLVED] * 3 + [Status.CANCELLED]
    assert not found.success
    assert found.chain[-1].status is Status.CANCELLED
    assert found.solution.objective == found.chain[2].objective
