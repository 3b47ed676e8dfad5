"""Options of the solution of a trajectory problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Literal

from designopt.collocation.statement.mesh import DEGREES, SCHEME_OF_SETTING, SCHEMES, Scheme, SchemeName
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.statement.stated_values import MOST_INTERVALS, ProblemError

#: Requested error below which the automatic choice is a Radau scheme of higher degree.
FINE = 1e-6

#: Admissible values of some settings.
CHOICES = {
    "scheme": ("auto", *SCHEMES),
    "midpoint_control": ("free", "linear"),
    "form": ("auto", "explicit", "residual"),
    "hessian": ("exact", "lbfgs"),
    "compile": ("auto", "never", "always"),
}


#: Maximum number of starts.
MOST_STARTS = 10_000
#: Maximum number of refinements of a mesh that fails its check.
CHECK_ROUNDS = 5


def _check_integer(name: str, value: object) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ValueError(f"{name} must be an integer, not {value!r}")


def _check_positive(name: str, value: object) -> None:
    if not isinstance(value, Real) or not 0.0 < float(value) < float("inf"):
        raise ValueError(f"{name} must be positive and finite, not {value!r}")


@dataclass(frozen=True)
class Refinement:
    """Mesh refinement until the error estimate of every interval is below `tolerance`, at most `rounds` times.

    ``split`` divides intervals; ``hp`` first raises the degree of Radau intervals up to `max_degree` (Patterson, Hager,
    Rao 2015). Errors are relative to 1 + the largest absolute value of a state on the interval.
    """

    tolerance: float = 1e-5
    method: Literal["split", "hp"] = "split"
    rounds: int = 8
    max_degree: int = 8

    def __post_init__(self) -> None:
        _check_positive("refine.tolerance", self.tolerance)
        _check_integer("refine.rounds", self.rounds)
        _check_integer("refine.max_degree", self.max_degree)
        if self.method not in ("split", "hp"):
            raise ValueError(f"refine.method must be split or hp, not '{self.method}'")
        if self.rounds < 1:
            raise ValueError(f"refine.rounds must be at least 1, not {self.rounds}")
        if self.max_degree not in DEGREES:
            raise ValueError(f"refine.max_degree must be from 1 to {DEGREES.stop - 1}, not {self.max_degree}")


@dataclass(frozen=True)
class Options:
    """Scheme, mesh and solver settings.

    `scheme` auto: hermite_simpson, but radau with algebraic variables, held controls, samples or refinement,
    and the scheme of any scheme-specific setting. `degree` applies to radau; the degree None is 3, or 5 for
    refinement below 1e-6. `midpoint_control` applies to hermite_simpson. `intervals` is per phase, rounded up to whole
    ones in each piece of a held control. `form` auto uses the residual form of systems
    that have one. `tolerance` is that of IPOPT, relative to the ranges of variables; if the cost then has a larger
    relative error, the solve continues. `ipopt` are settings of IPOPT and its linear solver by their own names, with
    precedence; with any of them IPOPT itself is used. `time_limit` (s) applies to each solve. `scales` replace
    automatic scales of variables by name. `compile` concerns the functions of a point, and those of a whole
    program that is solved repeatedly; with never, IPOPT and MUMPS solve all programs.

    `rollout` starts from the motion caused by the guessed controls. `starts` solves from several guesses, all but the
    first perturbed with random numbers of `seed`, and keeps the best. `persistent` tries alternatives after a failure,
    in a fixed order (`solve.attempts`). `refine` then refines the mesh; without it, a mesh with a larger error than
    `mesh_check` is refined until it is below, in at most five rounds (0: never). `check` assesses the accuracy of the
    result: error estimate, re-simulation and violations between the points.

    Raises `ValueError` for invalid numbers and `ProblemError` (bad_statement) for settings of other schemes.
    """

    scheme: Literal["auto", SchemeName] = "auto"
    intervals: int = 50
    degree: int | None = None
    midpoint_control: Literal["free", "linear"] = "free"
    form: Literal["auto", "explicit", "residual"] = "auto"
    refine: Refinement | None = None
    mesh_check: float = 0.0
    tolerance: float = 1e-8
    acceptable_tolerance: float = 1e-6
    max_iterations: int = 1000
    time_limit: float | None = None
    hessian: Literal["exact", "lbfgs"] = "exact"
    compile: Literal["auto", "never", "always"] = "auto"
    scales: Mapping[str, float] = field(default_factory=dict)
    ipopt: Mapping[str, float | int | str] = field(default_factory=dict)
    rollout: bool = False
    starts: int = 1
    seed: int = 0
    persistent: bool = True
    check: bool = True

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, not '{getattr(self, name)}'")
        for name, least in (("intervals", 1), ("max_iterations", 1), ("starts", 1), ("seed", 0)):
            _check_integer(name, getattr(self, name))
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)}")
        for name, limit in (("intervals", MOST_INTERVALS), ("starts", MOST_STARTS)):
            if getattr(self, name) > limit:
                raise ValueError(f"{name} must be at most {limit}, not {getattr(self, name)}")
        for name in ("tolerance", "acceptable_tolerance"):
            _check_positive(name, getattr(self, name))
        for name, value in (("time_limit", self.time_limit), ("mesh_check", self.mesh_check or None)):
            if value is not None:
                _check_positive(name, value)
        if self.degree is not None:
            _check_integer("degree", self.degree)
            if self.degree not in DEGREES:
                raise ValueError(f"degree must be from 1 to {DEGREES.stop - 1}, not {self.degree}")
        for name, scale in self.scales.items():
            _check_positive(f"scales.{name}", scale)
        if not isinstance(self.refine, Refinement | None):
            raise ValueError(f"refine must be a Refinement(...), not {self.refine!r}")
        self._check_scheme()

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Options:
        """Options with the `settings` of a study by name, as plain data: a refinement is a mapping. Others are at their
        defaults. Raises as the constructor does."""
        settings, refinement = dict(settings), settings.get("refine")
        # IPOPT accepts only integers for its counts, and integers for real options
        ipopt = settings.get("ipopt", {}).items()
        return cls(
            **settings
            | {
                "refine": None if refinement is None else Refinement(**refinement),
                "acceptable_tolerance": max(cls.acceptable_tolerance, settings.get("tolerance", cls.tolerance)),
                "ipopt": {n: int(v) if isinstance(v, float) and v.is_integer() else v for n, v in ipopt},
            }
        )

    @property
    def refinement(self) -> Refinement | None:
        """The refinement of a solved mesh: the stated one, or that of the mesh check."""
        if self.refine is None and self.mesh_check > 0.0:
            return Refinement(self.mesh_check, rounds=CHECK_ROUNDS)
        return self.refine

    def _check_scheme(self) -> None:
        """Checks that every setting belongs to the scheme in use."""
        linear = self.midpoint_control == "linear"
        scheme = SCHEME_OF_SETTING["midpoint_control"] if linear and self.scheme == "auto" else self.scheme
        is_stated = {
            "midpoint_control": linear,
            "degree": self.degree is not None,
            "refine.method": self.refine is not None and self.refine.method == "hp",
        }
        for name, its_scheme in SCHEME_OF_SETTING.items():
            if is_stated[name] and scheme not in ("auto", its_scheme):
                text = f"is a setting of the scheme {its_scheme}, not of {scheme}: leave it out or change the scheme"
                raise ProblemError("bad_statement", name, text)

    def scheme_for(self, problem: TrajectoryProblem) -> Scheme:
        """The initial scheme of all intervals."""
        name = self.scheme
        if name == "auto":
            has_held = any(phase.held_controls for phase in problem.phases)
            has_samples = any(phase.is_sampled for phase in problem.phases)
            needs = (
                has_held
                or has_samples
                or self.refine is not None
                or any(phase.system.algebraic for phase in problem.phases)
            )
            linear = self.midpoint_control == "linear"
            name = "radau" if self.degree is not None or (needs and not linear) else "hermite_simpson"
        fine = self.refine is not None and self.refine.tolerance < FINE
        degree = self.degree or (5 if fine else 3)
        return SCHEMES[name](degree, self.midpoint_control == "linear")

    def residual_for(self, problem: TrajectoryProblem) -> bool:
        """Whether the residual form is used. Raises `ProblemError` if it is requested and there is none."""
        if self.form == "residual" and all(phase.system.residual_form is None for phase in problem.phases):
            raise ProblemError("bad_statement", "form", "no system of the problem has a residual form")
        return self.form != "explicit"
