"""Public names that have changed work under the former one, with a warning that says the new one."""

import importlib
from dataclasses import dataclass

import pytest

from designopt.former import former_arguments


@pytest.mark.parametrize(
    ("module", "former", "now"),
    [
        ("designopt.collocation", "Course", "PhaseGuess"),
        ("designopt.report", "Choice", "Selector"),
        ("designopt.report.drawing", "Motion", "DrawnMotion"),
        ("designopt.study.study", "Study", "StudyDefinition"),
        ("designopt.study.study", "Parameter", "DesignVariable"),
        ("designopt.study.study", "Constraint", "StudyConstraint"),
        ("designopt_mechanics.state", "State", "TreeState"),
        ("designopt_mechanics.equations", "Equations", "TreeEquations"),
        ("designopt_mechanics.rods.dynamics", "Motion", "RodDynamics"),
        ("designopt_recordings.recording", "Event", "MarkedEvent"),
        ("designopt_recordings.table", "Table", "TimeTable"),
        ("designopt_recordings.frames", "Status", "StatusEnum"),
        ("designopt_recordings.signals.residuals", "Residuals", "ResidualAnalysis"),
        ("designopt_recordings.loads.contacts", "Contact", "ContactInterval"),
        ("designopt_wholebody.body.body", "Body", "BodySegment"),
        ("designopt_wholebody.forward.integrators", "Trajectory", "IntegratedMotion"),
        ("designopt_muscle.sharing.static.derivatives", "Slopes", "FrameDerivatives"),
    ],
)
def test_a_former_name_leads_to_what_is_called_otherwise_now(module: str, former: str, now: str) -> None:
    found = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=f"{module}.{former} is now called {now}"):
        assert getattr(found, former) is getattr(found, now)


def test_a_name_that_never_was_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Studdy'"):
        importlib.import_module("designopt.study.study").Studdy  # noqa: B018


def test_a_class_takes_a_renamed_argument_by_its_former_name_too() -> None:
    @former_arguments(least="minimum")
    @dataclass(frozen=True)
    class Muscle:
        minimum: float

    with pytest.warns(DeprecationWarning, match="Muscle: the argument 'least' is now called 'minimum'"):
        assert Muscle(least=0.1) == Muscle(minimum=0.1)
    with pytest.raises(TypeError, match="lesst"):
        Muscle(lesst=0.1)
