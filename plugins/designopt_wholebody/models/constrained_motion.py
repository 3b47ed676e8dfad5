"""The model ``constrained_motion``: formulation, integrator and step in, accuracy and cost of a simulation out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cached_property
from typing import Annotated, Any, NotRequired, TypedDict

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import Array as ArrayOf
from designopt.plugin import Diverged, InputFile, InvalidDesign, InvalidSetting, filled, model
from designopt.plugin import Quantity as Q
from designopt.study.language.errors import StudyError
from designopt_wholebody.forward.forces import Forces
from designopt_wholebody.forward.formulations import Accelerations, Formulation
from designopt_wholebody.forward.integrators import Integrator
from designopt_wholebody.forward.joint_springs import joint_springs
from designopt_wholebody.forward.simulation import SimulationMethod, measures, simulate
from designopt_wholebody.model.library import content_of
from designopt_wholebody.model.reading import read_model
from designopt_wholebody.model.schema import GROUND, PointSpring
from designopt_wholebody.subject import Subject, SubjectError, make_subject


class Method(TypedDict):
    """How the motion is computed."""

    formulation: Annotated[Formulation, Q("", "of the constrained equations of motion")]
    integrator: NotRequired[
        Annotated[Integrator, Q("", "of LC, LE, LP and LA; bdf of LC and LE only", default="trapezoidal")]
    ]
    step: Annotated[float, Q("s", "of the integrator", gt=0)]


class Conditions(TypedDict, total=False):
    """Conditions of a scenario."""

    gravity: Annotated[float, Q("m/s^2", "downwards", ge=0, default=9.81)]


class MotionOutputs(TypedDict):
    """Accuracy and cost; norms are the largest over the simulation."""

    position_error: Annotated[float, Q("m", "largest difference of a coordinate to the reference")]
    position_violation: Annotated[float, Q("", "norm of the constraints")]
    velocity_violation: Annotated[float, Q("1/s", "norm of the constraints' rate")]
    acceleration_violation: Annotated[float, Q("1/s^2", "norm of the constraints' second derivative")]
    energy_drift: Annotated[float, Q("J", "largest difference of the total energy to that at the start")]
    iterations: Annotated[float, Q("", "mean of a step; 0 for bdf, which does not report them")]
    unconverged_steps: NotRequired[
        Annotated[float, Q("", "steps whose iterations ended before the tolerance; none for bdf", notable=True)]
    ]
    systems: Annotated[float, Q("", "linear systems solved: the cost")]


ARRAYS = {
    "time": ArrayOf(("time",), "s", "of the simulation"),
    "violation": ArrayOf(("time",), "", "norm of the constraints"),
    "energy_change": ArrayOf(("time",), "J", "of the total energy since the start"),
    "error": ArrayOf(("time",), "m", "largest difference of a coordinate to the reference"),
    "coordinates": ArrayOf(("time", "coordinate"), "", "points in m and unit vectors"),
}


@model("constrained_motion", version=2, arrays=ARRAYS)
class ConstrainedMotion:
    """Motion of a body in natural coordinates from rest in its static posture, by one formulation and integrator.

    Formulations: classical (LC), stabilised (LE), penalty (LP), augmented Lagrangian (LA), and index-3 augmented
    Lagrangian with projections (LAP), which has the trapezoidal rule built in (Nunes 2017, chapter 2). Errors are
    against a simulation by DOP853 with a relative tolerance of 1e-12. A fixed step is rounded so that whole steps fill
    the duration.
    """

    body: Annotated[str, Q("", "bundled model")] = "two_rods"
    model_file: Annotated[InputFile | None, Q("", "your own model, instead of a bundled one")] = None
    springs: Annotated[
        tuple[PointSpring, ...], Q("", "springs, dampers and actuators between points, besides those of the model")
    ] = ()
    duration: Annotated[float, Q("s", "of the simulation", gt=0)] = 1.5
    penalty: Annotated[float, Q("", "alpha of LP, LA and LAP", gt=0)] = 1e7
    tolerance: Annotated[float, Q("m", "of the iterations of a step", gt=0)] = 1e-10

    def check(self) -> None:
        """Raise `InvalidSetting` for a model that cannot be read and for points that it does not have."""
        _ = self._subject
        for spring in self.springs:
            for segment, landmark in (spring.first, spring.second):
                bodies = self._subject.bodies
                if segment != GROUND and segment not in bodies:
                    raise InvalidSetting("springs", f"there is no segment '{segment}'; known: {', '.join(bodies)}")
                landmark_names = self._subject.landmarks if segment == GROUND else bodies[segment].local
                if landmark not in landmark_names:
                    raise InvalidSetting(
                        "springs", f"'{segment}' has no landmark '{landmark}'; it has {', '.join(landmark_names)}"
                    )

    def prepare(self) -> None:
        """Read the model."""
        _ = self._subject

    @cached_property
    def _subject(self) -> Subject:
        try:
            if self.model_file is not None:
                return make_subject(read_model(self.model_file.content, self.model_file.name, content_of))
            return make_subject(read_model(content_of(self.body), f"{self.body}.yaml", content_of))
        except KeyError as error:
            raise InvalidSetting("body", str(error.args[0])) from None
        except StudyError as error:
            first = error.issues[0]
            raise InvalidSetting("model_file", f"line {first.line}, column {first.column}: {first.message}") from None
        except SubjectError as error:
            raise InvalidSetting("model_file", str(error)) from None

    def _forces(self, scenario: Mapping[str, Any]) -> Forces:
        gravity = np.array([0.0, -filled(Conditions, scenario)["gravity"], 0.0])
        springs = (*self._subject.model.springs.values(), *self.springs)
        return Forces(self._subject, springs, gravity, joint_springs=joint_springs(self._subject))

    def evaluate(
        self, design: Method, scenario: Conditions, arrays: Set[str] = frozenset()
    ) -> tuple[MotionOutputs, dict[str, Floats]]:
        """Simulate and compare with the reference.

        Raises `InvalidDesign` for too many steps or a bad pair of methods, and `Diverged`.
        """
        method = filled(Method, design)
        steps = max(1, round(self.duration / method["step"]))
        if steps > 1_000_000:
            raise InvalidDesign(f"{self.duration:g} s in steps of {method['step']:g} s are {steps} steps: too many")
        if method["integrator"] == "bdf" and method["formulation"] in ("LP", "LA"):
            raise InvalidDesign("bdf works only with LC and LE: round-off times the penalty stops its step control")
        forces, q0 = self._forces(scenario), self._subject.q0
        trajectory = simulate(
            forces,
            q0,
            np.zeros_like(q0),
            self.duration,
            self.duration / steps,
            SimulationMethod(
                formulation=method["formulation"],
                integrator=method["integrator"],
                penalty=self.penalty,
                tolerance=self.tolerance,
            ),
        )
        if trajectory.message:
            raise Diverged(trajectory.message, reason="diverged")
        measured = measures(forces, trajectory)
        error = np.abs(trajectory.q - self._reference(forces, trajectory.time)).max(axis=1)
        change = measured.energy - measured.energy[0]
        outputs = MotionOutputs(
            position_error=float(error.max()),
            position_violation=float(measured.position.max()),
            velocity_violation=float(measured.velocity.max()),
            acceleration_violation=float(measured.acceleration.max()),
            energy_drift=float(np.abs(change).max()),
            iterations=float(trajectory.iterations[1:].mean()),
            systems=float(trajectory.systems),
        )
        if method["integrator"] != "bdf":
            outputs["unconverged_steps"] = float((trajectory.increment > self.tolerance).sum())
        all_arrays = {
            "time": trajectory.time,
            "violation": measured.position,
            "energy_change": change,
            "error": error,
            "coordinates": trajectory.q,
        }
        return outputs, {name: all_arrays[name] for name in arrays}

    def _reference(self, forces: Forces, times: Floats) -> Floats:
        """(k, n) coordinates by the stabilised formulation and DOP853."""
        from scipy.integrate import solve_ivp

        f, n = Accelerations(forces, "LE"), self._subject.n
        integration = solve_ivp(
            lambda t, y: np.concatenate([y[n:], f(t, y[:n], y[n:])]),
            (0.0, float(times[-1])),
            np.concatenate([self._subject.q0, np.zeros(n)]),
            method="DOP853",
            t_eval=times,
            rtol=1e-12,
            atol=1e-13,
        )
        if len(integration.t) < len(times):
            raise Diverged("the reference simulation does not reach the end", reason="reference")
        return np.asarray(integration.y.T[:, :n])
