"""`Inverse` answers or says why not: its residuals are its own, whatever the solver returns."""

import dataclasses

import numpy as np
import pytest
from designopt_mechanics.anatomy.companion import BUNDLED, Anatomy, Muscle, bundled
from designopt_mechanics.anatomy.equilibrium import Equilibrium, NoEquilibrium
from designopt_mechanics.anatomy.forward import Forward
from designopt_mechanics.anatomy.inverse import Infeasible, Inverse, NotConverged
from designopt_mechanics.tree_rows import TreeRows
from reference_arm import motion, reference_arm


@pytest.mark.parametrize("name", BUNDLED)
def test_tensions_and_poses_of_the_equilibrium_come_back_from_the_motion_that_they_make(name: str) -> None:
    """Forward: least potential by Newton's method. Inverse: balance of moments and resultants."""
    anatomy = bundled(name)
    forward = Forward(anatomy)
    pull = np.array([50.0 + 10.0 * i for i in range(len(forward.equilibrium.muscles))])
    q = np.full(len(anatomy.joints), 0.2)
    balance = forward.equilibrium.at(q, pull)
    ddq = forward.accelerations(q, 0.0 * q, pull)
    answer = Inverse(anatomy).at(q, 0.0 * q, ddq)
    equilibrium = Equilibrium(anatomy).at(q, [t for t, w in zip(answer.tensions, anatomy.wires, strict=True)
                                        if w.name in forward.equilibrium.muscles], answer.pose)  # fmt: skip
    assert equilibrium.tau == pytest.approx(balance.tau, rel=1e-6, abs=1e-5)
    assert np.abs(equilibrium.pose - answer.pose).max(initial=0.0) < 1e-7
    if name != "pectoralis":  # its wires share, the others' tensions are unique
        assert answer.tensions == pytest.approx(balance.tensions, rel=1e-5, abs=1e-3)


@pytest.mark.parametrize("name", ["teres_minor", "obturator_internus", "elbow_ligaments"])
def test_more_equations_than_unknowns_are_reported_with_what_is_missing(name: str) -> None:
    """The bundled patterns that no tensions keep at rest: their start values were returned with a residual of 0."""
    anatomy = bundled(name)
    q = np.full(len(anatomy.joints), 0.3)
    with pytest.raises(
        Infeasible, match=r"at joint '.*_[123]' .* N m are missing \([356] equations for [135] tensions"
    ):
        Inverse(anatomy).at(q, 0.0 * q, 0.0 * q)


@pytest.fixture(scope="module")
def arm() -> Anatomy:
    return reference_arm()


def test_an_answer_that_the_solver_did_not_finish_is_refused(arm: Anatomy) -> None:
    """From its optimum the program is stopped before the first step: balanced, but never proved to be least."""
    inverse = Inverse(arm)
    optimum = inverse.at(*motion(0.2))

    class Stopped:
        def __init__(self, program: object) -> None:
            self.program = program

        def __call__(self, **more: object) -> object:
            return self.program(**more)  # type: ignore[operator]

        def stats(self) -> dict[str, str]:
            return {"return_status": "Maximum_Iterations_Exceeded"}

    inverse.__dict__["_program"] = Stopped(inverse._program)
    with pytest.raises(NotConverged, match="IPOPT ends with Maximum_Iterations_Exceeded"):
        inverse.at(*motion(0.2), optimum)


def test_a_wire_without_a_length_is_named() -> None:
    anatomy = bundled("biceps")
    balance = Equilibrium(anatomy)
    wire = next(w for w in anatomy.wires if w.name == "R_Mus_FlexorB")
    end = TreeRows(anatomy.tree, compiled=False).positions([wire.points[0]], [anatomy.tree.reference])[0, 0]
    with pytest.raises(NoEquilibrium, match="wire 'R_Mus_FlexorB' has no length at the pose of its virtual link"):
        balance.at([0.0, 0.0], [10.0, 10.0], end)


def test_a_link_that_only_slack_muscles_hold_has_no_equilibrium() -> None:
    anatomy = bundled("biceps")
    muscle = next(law for law in anatomy.laws.values() if isinstance(law, Muscle))
    slack = Equilibrium(dataclasses.replace(anatomy, laws=dict.fromkeys(anatomy.laws, muscle)))
    with pytest.raises(NoEquilibrium, match=r"the tensions do not determine the pose .* nothing holds 'fork_x'"):
        slack.at([0.0, 0.0], np.zeros(len(anatomy.wires)))
