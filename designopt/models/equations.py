"""Symbolic equations of a declared model, from one call, and the systems built from them.

Derivatives with respect to the parameters come from sensitivity equations (Hairer, Norsett & Wanner, Solving Ordinary
Differential Equations I, 1993, section I.14): for every parameter p_j the sensitivities S_j = dx/dp_j are integrated
with the states, S_j' = f_x S_j + f_s ds_j + f_p, with the derivatives ds_j of the unknown rates from R_x S_j + R_s ds_j
+ R_p = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from designopt.dynamics import System, Variable
from designopt.dynamics.dimensions import findings, rate_of
from designopt.dynamics.equations import call_equations, check_named
from designopt.dynamics.expressions import Expressions, column
from designopt.lazy import casadi as ca
from designopt.models.quantities import (
    Event,
    Final,
    Guard,
    Integral,
    ModelQuantity,
    NumberInRange,
    Parameter,
    Peak,
    Series,
    State,
    Unknown,
)

#: Quantities sampled along a motion, in this order: arrays first.
SAMPLED = (Series, Peak, Final, Event)


@dataclass(frozen=True, eq=False)
class Equations:
    """Expressions of one model: `symbols` of given quantities, states and unknowns, `values` of quantities with an
    equation, by name."""

    name: str
    quantities: Mapping[str, ModelQuantity]
    symbols: Mapping[str, Any]
    time: Any
    values: Mapping[str, Any]

    @classmethod
    def from_model(
        cls, name: str, quantities: Mapping[str, ModelQuantity], equations: Callable[[Any], Any]
    ) -> Equations:
        """Call `equations` once. Raises `ValueError`, with a sentence, for equations that do not match the
        declaration."""
        symbols = {
            n: ca.SX.sym(n) for n, d in quantities.items() if isinstance(d, (NumberInRange, State, Unknown, Integral))
        }
        time = ca.SX.sym("time")
        expressions = call_equations(f"model '{name}'", equations, {**symbols, "time": time})
        names = [n for n, d in quantities.items() if not isinstance(d, NumberInRange)]
        check_named(f"model '{name}'", names, expressions, quantities)
        checker = Expressions(name)
        for n, symbol in (*symbols.items(), ("time", time)):
            checker.symbol("quantity", Variable(n, ""), symbol)
        values = {n: checker.only_known_names(f"the equation of '{n}'", e) for n, e in expressions.items()}
        model_equations = cls(name, quantities, symbols, time, values)
        integrals = column(symbols[n] for n in model_equations.names(Integral))
        for n in model_equations.names(State, Unknown, Integral, Series, Peak, Event, Guard):
            if ca.depends_on(values[n], integrals):
                raise ValueError(f"model '{name}': the equation of '{n}' contains an integral: declare it as a State")
        return model_equations

    def unit_findings(self) -> list[str]:
        """Unit errors in the equations, a sentence for each."""
        symbols = [(e, self.quantities[n].unit) for n, e in self.symbols.items()] + [(self.time, "s")]
        equations: list[tuple[str, Any, str | None]] = []
        for n, e in self.values.items():
            d = self.quantities[n]
            rate = isinstance(d, (State, Integral))
            required_unit = None if isinstance(d, (Unknown, Event, Guard)) else rate_of(d.unit) if rate else d.unit
            equation = (
                "the rate of" if isinstance(d, State) else "what is integrated for" if rate else "the equation of"
            )
            equations.append((f"{equation} '{n}'", e, required_unit))
        return findings(symbols, equations)

    def names(self, *kinds: type[ModelQuantity]) -> list[str]:
        """Names of the quantities of `kinds`, in the order of declaration."""
        return [n for n, d in self.quantities.items() if isinstance(d, kinds)]

    def system(self) -> System:
        """The states, with the series as outputs: for linearisation and trajectory problems."""
        return self._system(self.name, self.names(State), self._values(self.names(Series)), self.used())

    def simulation_system(self) -> System:
        """The states and the integrals, with all sampled quantities as outputs."""
        sampled_names = [n for kind in SAMPLED for n in self.names(kind)]
        return self._system(self.name, self.names(State, Integral), self._values(sampled_names), self.constants())

    def sensitive(self) -> System:
        """`simulation_system` with S_j times scale_<parameter> as further states, and as further outputs the
        derivatives of the outputs with respect to all parameters, with the same factor; "<event>/time" is the time
        derivative of an event's expression."""
        states, unknowns = self.names(State, Integral), self.names(Unknown)
        x, s = column(self.symbols[n] for n in states), column(self.symbols[n] for n in unknowns)
        f = column(self.values[n] for n in states)
        R = column(self.values[n] for n in unknowns)
        sampled_names = [n for kind in SAMPLED for n in self.names(kind)]
        y = column(self.values[n] for n in sampled_names)
        more_states, more_unknowns, scales, outputs = [], [], [], self._values(sampled_names)
        for name in self.names(Parameter):
            p, scale = self.symbols[name], ca.SX.sym(f"scale_{name}")
            S, ds = ca.SX.sym("S", x.numel()), ca.SX.sym("ds", s.numel())
            scales.append((Variable(f"scale_{name}", ""), scale))

            def total(e: Any, S: Any = S, ds: Any = ds, p: Any = p, scale: Any = scale) -> Any:
                return ca.jacobian(e, x) @ S + ca.jacobian(e, s) @ ds + ca.jacobian(e, p) * scale

            of_f, of_R, of_y = total(f), total(R), total(y)
            more_states += [(Variable(f"{n}_by_{name}", ""), S[i], of_f[i]) for i, n in enumerate(states)]
            more_unknowns += [(Variable(f"{n}_by_{name}", ""), ds[i], of_R[i]) for i, n in enumerate(unknowns)]
            outputs |= {f"{n}_by_{name}": of_y[i] for i, n in enumerate(sampled_names)}
        for n in self.names(Event):
            g = self.values[n]
            outputs[f"{n}_by_time"] = ca.jacobian(g, x) @ f + ca.jacobian(g, self.time)
        name = f"{self.name}_by_parameters"
        return self._system(name, states, outputs, self.constants(), more_states, more_unknowns, scales)

    def function(self, names: list[str]) -> Any:
        """The CasADi function of states and integrals, unknowns, parameters, constants and time that returns
        `names`."""
        groups = [self.names(State, Integral), self.names(Unknown), self.names(Parameter), self.constants()]
        arguments = [column(self.symbols[n] for n in group) for group in groups]
        return ca.Function("values", [*arguments, self.time], [self.values[n] for n in names])

    def constants(self) -> list[str]:
        """The conditions and the numeric settings."""
        return [n for n in self.names(NumberInRange) if not isinstance(self.quantities[n], Parameter)]

    def used(self) -> list[str]:
        """The constants that the motion, its signals and its integrals depend on."""
        every = column(self.values[n] for n in self.names(State, Unknown, Series, Integral, Guard))
        return [n for n in self.constants() if ca.depends_on(every, self.symbols[n])]

    def _values(self, names: list[str]) -> dict[str, Any]:
        return {n: self.values[n] for n in names}

    def _system(
        self,
        name: str,
        states: list[str],
        outputs: Mapping[str, Any],
        data: list[str],
        more_states: Sequence[Any] = (),
        more_unknowns: Sequence[Any] = (),
        more_data: Sequence[Any] = (),
    ) -> System:
        def variable(n: str) -> Variable:
            d = self.quantities.get(n)
            if d is None:
                return Variable(n, "")
            low, high = (d.low, d.high) if isinstance(d, (State, NumberInRange)) else (-math.inf, math.inf)
            return Variable(n, d.unit, low, high, d.description)

        own_unknowns = [(variable(n), self.symbols[n], self.values[n]) for n in self.names(Unknown)]
        return System.from_expressions(
            name,
            states=[*((variable(n), self.symbols[n], self.values[n]) for n in states), *more_states],
            unknowns=[*own_unknowns, *more_unknowns],
            parameters=[(variable(n), self.symbols[n]) for n in self.names(Parameter)],
            data=[*((variable(n), self.symbols[n]) for n in data), *more_data],
            outputs=[(variable(n), e) for n, e in outputs.items()],
            guards={n: self.values[n] for n in self.names(Guard)},
            time=self.time,
        )
