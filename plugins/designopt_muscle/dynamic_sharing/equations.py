"""The equations of muscles that share moments over time, as a system for collocation.

De Groote et al., Ann. Biomed. Eng. 44 (2016) 2922: activations a and normalised tendon forces f are states, excitations
e, the rates u of f and the reserves are controls. Fibre and tendon are in equilibrium, and the moments are balanced, by
path constraints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from designopt_mechanics.moment_balance import MomentBalance

from designopt.arrays import Floats
from designopt.dynamics.system import System, Variable
from designopt.lazy import casadi as ca
from designopt_muscle.curves import LENGTHS, OPENSIM, TENDON_FORCES, activation_rate
from designopt_muscle.dynamic_sharing.muscles import DynamicMuscles
from designopt_muscle.dynamic_sharing.terms import Device, DynamicReserves, DynamicTerms, Factor, checked_factors

#: Largest rate of a normalised tendon force, 1/s.
FASTEST_RATE = 100.0


def labels(names: Sequence[str]) -> tuple[str, ...]:
    """Names of muscles or rows as parts of names of variables; equal ones are numbered."""
    plain = [re.sub(r"\W", "_", name) for name in names]
    return tuple(p if plain.count(p) == 1 else f"{p}_{i}" for i, p in enumerate(plain))


@dataclass(frozen=True, eq=False)
class DynamicTrial:
    """One motion and its problem: moments to balance, muscles, reserves, terms, a device, factors.

    Raises `ValueError`, which names them, for parts that do not fit each other.
    """

    balance: MomentBalance
    muscles: DynamicMuscles
    reserves: DynamicReserves
    terms: DynamicTerms = field(default_factory=DynamicTerms)
    device: Device | None = None
    factors: tuple[Factor, ...] = ()

    def __post_init__(self) -> None:
        balance, muscles, terms = self.balance, self.muscles, self.terms
        n, k = len(balance.time), len(muscles.names)
        if not balance.usable.all():
            when = balance.time[~balance.usable][0]
            raise ValueError(
                f"the frame at {when:g} s has no net moment or coordinate; dynamic sharing needs all frames"
            )
        if muscles.names != balance.columns or len(muscles.lengths) != n:
            raise ValueError("the muscles are not the columns of the balance, or have other frames")
        if self.reserves.optimal.shape != (len(balance.rows),):
            raise ValueError(f"{len(self.reserves.optimal)} reserves for {len(balance.rows)} rows")
        if terms.weights is not None and terms.weights.shape != (k,):
            raise ValueError(f"weights has the shape {terms.weights.shape}, not ({k},)")
        if terms.synergies is not None and (terms.synergies.ndim != 2 or len(terms.synergies) != k):
            raise ValueError(f"synergies has the shape {terms.synergies.shape}, not ({k} muscles, commands)")
        if terms.tracking is not None and terms.tracking.signals.shape != (n, k):
            raise ValueError(f"signals has the shape {terms.tracking.signals.shape}, not {(n, k)}")
        if terms.fibres is not None:
            self._check_fibres(terms.fibres.lengths)
        if self.device is not None:
            if self.device.row not in balance.rows:
                raise ValueError(f"the device acts about '{self.device.row}', no row ({', '.join(balance.rows)})")
            if np.shape(self.device.angle) != (n,) or not np.isfinite(self.device.angle).all():
                raise ValueError(f"the angle of the device is {n} finite numbers")
        checked_factors(self.factors, muscles.names)
        _ = self.band

    def _check_fibres(self, lengths: Floats) -> None:
        if lengths.shape != self.muscles.lengths.shape:
            raise ValueError(f"fibre lengths has the shape {lengths.shape}, not {self.muscles.lengths.shape}")
        relative = lengths / self.muscles.optimal
        with np.errstate(invalid="ignore"):
            odd = np.argwhere((relative < LENGTHS[0]) | (relative > LENGTHS[1]))
        if len(odd):
            i, j = odd[0]
            raise ValueError(
                f"the measured fibre of '{self.muscles.names[j]}' is {lengths[i, j]:g} m at {self.balance.time[i]:g} s,"
                f" {relative[i, j]:.3g} of its optimal length; lengths are in metres, from {LENGTHS[0]} to {LENGTHS[1]}"
                " of it"
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names (k) of the muscles as parts of names of variables."""
        return labels(self.muscles.names)

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """Names (m) of the rows as parts of names of variables."""
        return labels(self.balance.rows)

    @cached_property
    def reserve_rows(self) -> list[int]:
        """Rows that have a reserve."""
        return [int(i) for i in np.flatnonzero(self.reserves.optimal > 0)]

    @cached_property
    def compliant(self) -> list[int]:
        """Muscles with an elastic tendon."""
        return [int(j) for j in self.muscles.compliant]

    @cached_property
    def commands(self) -> int:
        """How many commands of synergies there are; 0 where excitations are free."""
        return 0 if self.terms.synergies is None else int(self.terms.synergies.shape[1])

    @cached_property
    def weights(self) -> dict[str, float]:
        """The weights of the objective's terms."""
        terms = self.terms
        tracking = 0.0 if terms.tracking is None else terms.tracking.weight
        fibres = 0.0 if terms.fibres is None else terms.fibres.weight
        moving = terms.rates if self.compliant else 0.0
        return {"effort": 1.0, "moving": moving, "tracking": tracking, "fibres": fibres}

    @cached_property
    def signal_muscles(self) -> list[int]:
        """Muscles with a measured signal in any frame."""
        if self.terms.tracking is None:
            return []
        return [int(j) for j in np.flatnonzero(np.isfinite(self.terms.tracking.signals).any(axis=0))]

    @cached_property
    def observed_fibres(self) -> list[int]:
        """Muscles with a measured fibre length in any frame."""
        if self.terms.fibres is None:
            return []
        return [int(j) for j in np.flatnonzero(np.isfinite(self.terms.fibres.lengths).any(axis=0))]

    @cached_property
    def band(self) -> tuple[Floats, Floats] | None:
        """(n, k) bounds of the excitations from the signals, else those of the muscles.

        Raises `ValueError`, with muscle and time, if a band and the muscle's own range are disjoint.
        """
        tracking = self.terms.tracking
        if tracking is None or tracking.band is None:
            return None
        lowest = np.broadcast_to(self.muscles.min_activation, tracking.signals.shape)
        low = np.fmax(tracking.signals + tracking.band[0], lowest)
        high = np.fmin(tracking.signals + tracking.band[1], 1.0)
        empty = np.argwhere(low > high + 1e-12)
        if len(empty):
            i, j = empty[0]
            raise ValueError(
                f"the band about the signal of '{self.muscles.names[j]}' at {self.balance.time[i]:g} s"
                f" ({tracking.signals[i, j]:g}) leaves none of the excitations from {lowest[i, j]:g} to 1;"
                " normalise the signal or widen the band"
            )
        return low, high

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """(row, muscle) of the moment arms that are not zero throughout."""
        return [(int(i), int(j)) for i, j in np.argwhere((self.balance.arms != 0).any(axis=0))]

    @cached_property
    def sizes(self) -> Floats:
        """(m,) scales of the balance of each row."""
        return np.asarray(np.maximum(1.0, np.abs(self.balance.moments).max(axis=0)))

    def isometric(self, parameters: Mapping[str, float]) -> Floats:
        """(k,) N maximum isometric forces with these parameters."""
        factor_names = checked_factors(self.factors, self.muscles.names)
        scaled_forces = [
            parameters[factor_names["force", n]] if ("force", n) in factor_names else 1.0 for n in self.muscles.names
        ]
        return np.asarray(self.muscles.force * scaled_forces * parameters["strength"])

    @cached_property
    def data(self) -> dict[str, Floats]:
        """Data of the equations for every frame (n,), by the names of the system's data."""
        balance, muscles, names = self.balance, self.muscles, self.names
        columns: dict[str, Floats] = {}
        for prefix, table in (("length", muscles.lengths), ("speed", muscles.speeds)):
            columns |= {f"{prefix}_{name}": table[:, j] for j, name in enumerate(names)}
        columns |= {f"arm_{self.rows[i]}_{names[j]}": balance.arms[:, i, j] for i, j in self.pairs}
        columns |= {f"needed_{row}": balance.moments[:, i] for i, row in enumerate(self.rows)}
        if self.device is not None:
            columns["angle"] = np.asarray(self.device.angle, dtype=np.float64)
        if self.terms.tracking is not None:
            for j in self.signal_muscles:
                signal = self.terms.tracking.signals[:, j]
                columns[f"signal_{names[j]}"] = np.where(np.isfinite(signal), signal, 0.0)
                columns[f"known_{names[j]}"] = np.isfinite(signal).astype(np.float64)
                if self.band is not None:
                    columns[f"least_{names[j]}"], columns[f"most_{names[j]}"] = (end[:, j] for end in self.band)
        if self.terms.fibres is not None:
            for j in self.observed_fibres:
                length = self.terms.fibres.lengths[:, j]
                columns[f"seen_length_{names[j]}"] = np.where(np.isfinite(length), length, muscles.optimal[j])
                columns[f"seen_there_{names[j]}"] = np.isfinite(length).astype(np.float64)
        return columns

    @cached_property
    def system(self) -> System:
        """The equations."""
        return _System(self).system()


class _System:
    """The expressions of one system."""

    def __init__(self, trial: DynamicTrial) -> None:
        self.trial, self.muscles = trial, trial.muscles
        names, rows = trial.names, trial.rows

        def symbols(prefix: str, parts: Sequence[str]) -> dict[str, Any]:
            return {part: ca.SX.sym(f"{prefix}_{part}") for part in parts}

        self.elastic = [names[j] for j in trial.compliant]
        self.a, self.length, self.speed = (symbols(p, names) for p in ("activation", "length", "speed"))
        self.f, self.u = (symbols(p, self.elastic) for p in ("tendon_force", "force_rate"))
        self.reserve = symbols("reserve", [rows[i] for i in trial.reserve_rows])
        self.net_moments = symbols("needed", rows)
        self.arms = {(i, j): ca.SX.sym(f"arm_{rows[i]}_{names[j]}") for i, j in trial.pairs}
        self.command = symbols("command", [str(s + 1) for s in range(trial.commands)])
        self.parameters: dict[str, tuple[str, Any]] = {"strength": ("", ca.SX.sym("strength"))}
        for name in dict.fromkeys(factor.name for factor in trial.factors):
            self.parameters[name] = ("", ca.SX.sym(name))
        self.factor = checked_factors(trial.factors, self.muscles.names)
        if trial.terms.synergies is not None:
            excitations = ca.DM(trial.terms.synergies) @ ca.vertcat(*self.command.values())
            self.e = dict(zip(names, ca.vertsplit(excitations), strict=True))
        else:
            self.e = symbols("excitation", names)
        signal_names = [names[j] for j in trial.signal_muscles]
        self.signal, self.is_measured = symbols("signal", signal_names), symbols("known", signal_names)
        tracking = trial.terms.tracking
        if tracking is not None and tracking.free_scale:
            for name in signal_names:
                self.parameters[f"signal_scale_{name}"] = ("", ca.SX.sym(f"signal_scale_{name}"))
        fibre_names = [names[j] for j in trial.observed_fibres]
        self.observed_length, self.is_observed = symbols("seen_length", fibre_names), symbols("seen_there", fibre_names)
        self.fibre_errors: Any = ca.SX(0)
        band_names = signal_names if trial.band is not None else []
        self.band = {end: symbols(end, band_names) for end in ("least", "most")}
        self.angle = ca.SX.sym("angle")
        if trial.device is not None:
            for name, unit in (("stiffness", "N m/rad"), ("rest", "rad"), ("assistance", "")):
                self.parameters[name] = (unit, ca.SX.sym(name))
        self.outputs: list[tuple[Variable, Any]] = []

    def _value(self, name: str) -> Any:
        return self.parameters[name][1]

    def _scaled_value(self, quantity: str, j: int, value: float) -> Any:
        name = self.factor.get((quantity, self.muscles.names[j]))
        return value if name is None else value * self._value(name)

    def _muscle(self, j: int) -> Any:
        """The force (N) of muscle j along its tendon; equations and figures of its fibre become outputs."""
        muscles, name = self.muscles, self.trial.names[j]
        slack = self._scaled_value("slack", j, float(muscles.slack[j]))
        strain = self._scaled_value("strain", j, float(muscles.tendon_strain[j]))
        force = self._scaled_value("force", j, float(muscles.force[j])) * self._value("strength")
        path = self.length[name], self.speed[name]
        tendon: tuple[Any, Any] = slack, 0.0
        if name in self.f:
            f, u = self.f[name], self.u[name]
            tendon = slack * OPENSIM.tendon_length(f, strain=strain), slack * OPENSIM.tendon_speed(f, u, strain=strain)
        optimal = self._scaled_value("fibre", j, float(muscles.optimal[j]))
        fibre = muscles.fibre(j, tendon, path, optimal)
        if name in self.observed_length:
            error = (fibre.length * optimal - self.observed_length[name]) / float(muscles.optimal[j])
            self.fibre_errors += self.is_observed[name] * error**2
        active, resting = muscles.forces(j, fibre)
        relative = self.a[name] * active + resting
        self.outputs += [(Variable(f"fibre_length_{name}", ""), fibre.length)]
        self.outputs += [(Variable(f"fibre_speed_{name}", ""), fibre.speed)]
        if name in self.f:
            self.outputs += [(Variable(f"equilibrium_{name}", ""), self.f[name] - relative)]
            relative = self.f[name]
        self.outputs += [(Variable(f"muscle_force_{name}", "N"), force * relative)]
        return force * relative

    def _moments(self) -> None:
        """The balance of all rows."""
        trial = self.trial
        forces = [self._muscle(j) for j in range(len(self.muscles.names))]
        for i, row in enumerate(trial.rows):
            left = self.net_moments[row]
            if trial.device is not None and trial.balance.rows[i] == trial.device.row:
                values = {name: symbol for name, (_, symbol) in self.parameters.items()}
                device = trial.device.moment(left, values, self.angle)
                self.outputs += [(Variable("device", "N m"), device)]
                left = left - device
            for (r, j), arm in self.arms.items():
                if r == i:
                    left = left - arm * forces[j]
            if row in self.reserve:
                left = left - float(trial.reserves.optimal[i]) * self.reserve[row]
            self.outputs += [(Variable(f"balance_{row}", ""), left / float(trial.sizes[i]))]

    def _costs(self) -> None:
        """Integrands of the cost."""
        trial, terms = self.trial, self.trial.terms
        weights = np.ones(len(trial.names)) if terms.weights is None else terms.weights
        activity = self.e if terms.charged == "excitation" else self.a
        effort = sum(float(w) * activity[name] ** 2 for w, name in zip(weights, trial.names, strict=True))
        squares = sum((r**2 for r in self.reserve.values()), ca.SX(0))
        self.outputs += [(Variable("effort_rate", ""), terms.effort * effort + trial.reserves.weight * squares)]
        self.outputs += [(Variable("moving_rate", "1/s^2"), sum((u**2 for u in self.u.values()), ca.SX(0)))]
        tracking_error = ca.SX(0)
        if terms.tracking is not None:
            for name, signal in self.signal.items():
                scale = self._value(f"signal_scale_{name}") if terms.tracking.free_scale else 1.0
                tracking_error += self.is_measured[name] * (self.e[name] - scale * signal) ** 2
        self.outputs += [
            (Variable("tracking_rate", ""), tracking_error),
            (Variable("fibres_rate", ""), self.fibre_errors),
        ]

    def system(self) -> System:
        """The system with all its tables."""
        trial, muscles, names = self.trial, self.muscles, self.trial.names
        self._moments()
        self._costs()
        rate = {
            name: activation_rate(
                self.e[name], self.a[name], rise=float(muscles.rise[j]), fall=float(muscles.fall[j]),
                sharpness=trial.terms.sharpness,
            )
            for j, name in enumerate(names)
        }  # fmt: skip
        lowest = dict(zip(names, muscles.min_activation.tolist(), strict=True))
        low, high = TENDON_FORCES
        if trial.commands:
            self.outputs += [(Variable(f"excitation_{name}", ""), self.e[name]) for name in names]
            command_entries = [(Variable(f"command_{s}", "", 0.0), symbol) for s, symbol in self.command.items()]
        else:
            command_entries = [(Variable(f"excitation_{name}", "", lowest[name], 1.0), self.e[name]) for name in names]
        limit = trial.reserves.limit
        units = dict(zip(trial.rows, trial.balance.row_units, strict=True))
        data = [
            *((Variable(f"length_{n}", "m"), self.length[n]) for n in names),
            *((Variable(f"speed_{n}", "m/s"), self.speed[n]) for n in names),
            *((Variable(f"arm_{trial.rows[i]}_{names[j]}", ""), arm) for (i, j), arm in self.arms.items()),
            *((Variable(f"needed_{r}", units[r]), symbol) for r, symbol in self.net_moments.items()),
            *((Variable(f"signal_{n}", ""), symbol) for n, symbol in self.signal.items()),
            *((Variable(f"known_{n}", ""), symbol) for n, symbol in self.is_measured.items()),
            *((Variable(f"seen_length_{n}", "m"), symbol) for n, symbol in self.observed_length.items()),
            *((Variable(f"seen_there_{n}", ""), symbol) for n, symbol in self.is_observed.items()),
            *(
                (Variable(f"{end}_{n}", ""), symbol)
                for end, band_symbols in self.band.items()
                for n, symbol in band_symbols.items()
            ),
            *([(Variable("angle", "rad"), self.angle)] if trial.device is not None else []),
        ]
        states = [(Variable(f"activation_{n}", "", lowest[n], 1.0), self.a[n], rate[n]) for n in names]
        states += [(Variable(f"tendon_force_{n}", "", low, high), self.f[n], self.u[n]) for n in self.elastic]
        return System.from_expressions(
            "sharing",
            states=states,
            controls=[
                *command_entries,
                *((Variable(f"force_rate_{n}", "1/s", -FASTEST_RATE, FASTEST_RATE), self.u[n]) for n in self.elastic),
                *((Variable(f"reserve_{r}", "", -limit, limit), symbol) for r, symbol in self.reserve.items()),
            ],
            parameters=[(Variable(name, unit), symbol) for name, (unit, symbol) in self.parameters.items()],
            data=data,
            outputs=self.outputs,
        )
