"""The decorator `motion`: a class of declared quantities and equations becomes a model."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Set
from functools import cached_property
from typing import Annotated, Any, NotRequired, Required, TypedDict, TypeVar

from designopt.dynamics.equations import DeclaredSymbols, with_location
from designopt.models.quantities import (
    Condition,
    ModelQuantity,
    NumberInRange,
    Output,
    Parameter,
    Series,
    Setting,
    State,
)
from designopt.plugin import Array, InvalidDesign, PluginError, Quantity, model
from designopt.study.language import units

T = TypeVar("T", bound=type)

_RTOL = Setting("", "relative tolerance of the simulation", 1e-8, gt=0, le=1e-3)


#: Designs of a model of motion that are simulated side by side: several times the lanes of a processor, which refill.
_BATCH_SIZE = 64


def motion(name: str, *, version: int, cost: str = "", samples: int = 301) -> Callable[[T], T]:
    """Declare a model with equations of motion: a class whose attributes declare each quantity once.

    The attributes are `designopt.models` quantities. A `Setting` or `Condition` named ``duration`` (s) is the length of
    the motion; the setting ``rtol`` is built in. The method ``equations(self, v)`` returns the equation of every
    quantity that is not given, as a mapping by name: CasADi expressions of the attributes of `v` (given quantities,
    states, unknowns, and in a `Final` the integrals) and of ``v.time`` (s).

    Optional methods: ``breaks(self, v)`` returns times (s), functions of the conditions and settings `v`, at which an
    input changes abruptly or sets in, where a long step would miss it; ``refusal(self, v)`` returns the name of an
    inadmissible quantity and a sentence, or None, with the parameters in `v` if available.

    The model then has ``evaluate`` with figures and arrays (states and series, at `samples` times and the breaks),
    ``gradient`` (exact, by sensitivity equations), ``linearise``, the checks and tables of a study file, and, with the
    name of a figure as `cost`, ``trajectory_problem``. Raises `PluginError` for an invalid declaration.
    """

    def declare(target: T) -> T:
        quantities = {n: d for n, d in vars(target).items() if isinstance(d, ModelQuantity)}
        quantities.setdefault("rtol", _RTOL)
        _check(name, quantities, target, cost)
        for n, d in quantities.items():
            if n in vars(target):
                delattr(target, n)
            if isinstance(d, Setting):
                target.__annotations__[n] = Annotated[float, d.quantity]
                if d.default is not None:
                    setattr(target, n, float(d.default))
        for n, method in _methods(name, quantities, target, cost, samples).items():
            setattr(target, n, method)
        arrays = {"time": Array(("time",), "s", "of the motion")}
        moving = [(n, d) for n, d in quantities.items() if isinstance(d, (State, Series))]
        arrays |= {n: Array(("time",), d.unit, d.description) for n, d in moving}
        return model(name, version=version, arrays=arrays)(target)

    return declare


def _check(name: str, quantities: Mapping[str, ModelQuantity], target: type, cost: str) -> None:
    def refuse(text: str) -> PluginError:
        return PluginError(f"model '{name}': {text}")

    if not isinstance(quantities.get("duration"), (Setting, Condition)):
        raise refuse("declare the duration of the motion: duration = Setting('s', 'of the motion', 1.0, gt=0)")
    if not any(isinstance(d, State) for d in quantities.values()):
        raise refuse("declare at least one State")
    if not any(isinstance(d, Output) for d in quantities.values()):
        raise refuse("declare at least one figure: an Integral, a Peak, a Final or an Event")
    if not callable(getattr(target, "equations", None)):
        raise refuse("give it a method equations(self, v)")
    if "time" in quantities:
        raise refuse("time is always there; do not declare it")
    if cost and not isinstance(quantities.get(cost), Output):
        raise refuse(f"the cost '{cost}' is not a declared figure")
    for n, d in quantities.items():
        try:
            units.check(d.unit)
        except units.UnitError as error:
            raise refuse(f"{n}: {error}") from None
        initial_value = d.initial if isinstance(d, State) else None
        if isinstance(initial_value, str) and not isinstance(quantities.get(initial_value), NumberInRange):
            raise refuse(
                f"the initial value of '{n}' is '{initial_value}', which is not a parameter, condition or setting"
            )


def _methods(
    name: str, quantities: Mapping[str, ModelQuantity], target: type, cost: str, samples: int
) -> dict[str, Any]:
    """The methods of a model of motion, with types made of its quantities."""
    given_breaks, given_refusal, given_check = (vars(target).get(n) for n in ("breaks", "refusal", "check"))
    defaults = {n: d.default for n, d in quantities.items() if isinstance(d, Condition) and d.default is not None}
    settings = [n for n, d in quantities.items() if isinstance(d, Setting)]

    def numbers(self: Any, scenario: Mapping[str, Any], design: Mapping[str, Any]) -> dict[str, float]:
        return {
            n: float(v)
            for n, v in {**defaults, **{n: getattr(self, n) for n in settings}, **scenario, **design}.items()
        }

    def refused(self: Any, values: Mapping[str, float]) -> tuple[str, str] | None:
        refusal: tuple[str, str] | None = given_refusal(self, _symbols(values)) if given_refusal else None
        return refusal

    def breaks(self: Any, values: Mapping[str, float]) -> list[float]:
        constant = {n: v for n, v in values.items() if not isinstance(quantities.get(n), Parameter)}
        return [float(t) for t in given_breaks(self, _symbols(constant))] if given_breaks else []

    def ready(self: Any, design: Mapping[str, Any], scenario: Mapping[str, Any]) -> tuple[Any, ...]:
        values = numbers(self, scenario, design)
        if wrong := refused(self, values):
            raise InvalidDesign(wrong[1])
        return values, values["duration"], breaks(self, values)

    def _symbols(values: Mapping[str, float]) -> DeclaredSymbols:
        return DeclaredSymbols(values, f"model '{name}'")

    def simulation(self: Any) -> Any:
        from designopt.models.equations import Equations
        from designopt.models.simulation import Simulation

        return Simulation(Equations.from_model(name, quantities, self.equations), self.rtol, samples)

    def check(self: Any) -> None:
        """Call the equations. Raises `PluginError` for errors in them and for inconsistent units."""
        if given_check is not None:
            given_check(self)
        try:
            equations = self.simulation.equations
            if wrong := equations.unit_findings():
                raise ValueError(f"model '{name}': " + "; ".join(wrong))
        except ValueError as error:
            names = [n for n in quantities if not isinstance(quantities[n], NumberInRange)]
            raise PluginError(with_location(str(error), target.equations, names)) from error  # type: ignore[attr-defined]

    def prepare(self: Any) -> None:
        """Derive and compile the equations."""
        self.simulation.simulator.prepare_several()

    def evaluate(self: Any, design: Any, scenario: Any, arrays: Set[str] = frozenset()) -> Any:
        """Simulate the motion."""
        from designopt.dynamics.simulation.side_by_side import run_alone

        return run_alone(evaluation(self, design, scenario, arrays))

    def evaluation(self: Any, design: Any, scenario: Any, arrays: Set[str]) -> Any:
        return (yield from self.simulation.evaluation(*ready(self, design, scenario), arrays))

    def batch(self: Any, designs: Any, scenarios: Any, arrays: Set[str] = frozenset()) -> Any:
        """`evaluate` of several designs, each in its scenario, side by side in lanes."""
        from designopt.dynamics.simulation.side_by_side import side_by_side

        return side_by_side([evaluation(self, *row, arrays) for row in zip(designs, scenarios, strict=True)])

    def gradient(self: Any, design: Mapping[str, Any], scenario: Mapping[str, Any]) -> dict[str, dict[str, float]]:
        """Derivatives ``{figure: {parameter: derivative}}`` by sensitivity equations, in the declared units."""
        slopes: dict[str, dict[str, float]] = self.simulation.gradient(*ready(self, design, scenario))
        return slopes

    def linearise(
        self: Any, design: Mapping[str, Any], scenario: Mapping[str, Any], states: Mapping[str, float], time: float = 0
    ) -> Any:
        """The `designopt.dynamics.Linearisation` of states and series about `states` at a `time` (s)."""
        from designopt.dynamics import linearise

        system, values = self.simulation.equations.system(), numbers(self, scenario, design)
        p, q = ({v.name: values[v.name] for v in table} for table in (system.parameters, system.data))
        return linearise(system, states, p=p, q=q, t=time)

    def trajectory_problem(self: Any, scenario: Mapping[str, Any]) -> Any:
        """The motion and its parameters as one program. Raises `ProblemError` without a `cost`."""
        from designopt.collocation import ProblemError
        from designopt.models.trajectory import trajectory_problem

        values = numbers(self, scenario, {})
        if wrong := refused(self, values):
            raise ProblemError("bad_bounds", *wrong)
        return trajectory_problem(self.simulation.equations, values, cost, samples)

    inputs, conditions, outputs = _types(quantities)
    answer = types.GenericAlias(tuple, (outputs, dict[str, Any]))
    evaluate.__annotations__ |= {"design": inputs, "scenario": conditions, "return": answer}
    methods: dict[str, Any] = {"check": check, "prepare": prepare, "evaluate": evaluate, "linearise": linearise}
    methods |= {"batch": batch, "batch_size": _BATCH_SIZE, "simulation": cached_property(simulation)}
    methods["simulation"].__set_name__(target, "simulation")
    if any(isinstance(d, Parameter) for d in quantities.values()):
        methods["gradient"] = gradient
    if cost:
        methods |= {"trajectory_problem": trajectory_problem, "own_options": True}
    return methods


def _types(quantities: Mapping[str, ModelQuantity]) -> tuple[Any, Any, Any]:
    """TypedDicts of the inputs, the conditions and the outputs."""
    inputs = {n: Annotated[float, d.quantity] for n, d in quantities.items() if isinstance(d, Parameter)}
    conditions: dict[str, Any] = {}
    for n, d in quantities.items():
        if isinstance(d, Condition):
            of_number = Annotated[float, d.quantity]
            conditions[n] = Required[of_number] if d.default is None else NotRequired[of_number]
    figures = {n: d for n, d in quantities.items() if isinstance(d, Output)}
    outputs = {n: Annotated[float, Quantity(d.unit, d.description)] for n, d in figures.items()}
    return (
        TypedDict("Design", inputs),  # type: ignore[operator]
        TypedDict("Scenario", conditions),  # type: ignore[operator]
        TypedDict("Outputs", outputs),  # type: ignore[operator]
    )
