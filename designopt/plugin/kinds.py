"""The kinds of plugins as types: declarations and optional capabilities.

A capability is a field here or one of the `methods`, read once at declaration (see `designopt.plugin.declaration`); no
other code inspects the plugin's class for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

from designopt.plugin.values import Array, Fidelity, Field

Kind = Literal["model", "objective", "solver", "aggregation", "report", "export"]

#: Optional methods of the class of a model or a solver.
Method = Literal[
    "baselines", "batch", "check", "check_scenario", "check_space", "declares", "design_remarks", "evaluation_options",
    "file_study", "file_table", "gradient", "indices", "minimum_budget", "prepare", "prepare_scenario", "program",
    "remarks", "runs", "study_remarks", "trajectory_problem", "unit_sample", "write_files",
]  # fmt: skip


@dataclass(frozen=True)
class Plugin:
    """Common fields of all plugins.

    `target` is the function or class; `settings` are its keyword-only arguments or annotated fields. A study that
    leaves the `later_settings` at their defaults keeps the keys from before their addition. `source` is the file of the
    declaration, if any; `methods` are the optional ones of its class.
    """

    kind: ClassVar[Kind]
    name: str
    version: int
    target: Callable[..., Any]
    settings: Mapping[str, Field]
    description: str
    source: Path | None = field(default=None, kw_only=True)
    later_settings: tuple[str, ...] = field(default=(), kw_only=True)
    methods: frozenset[Method] = field(default=frozenset(), kw_only=True)

    @property
    def is_class(self) -> bool:
        """Whether it is a class: its settings are fields, and it may keep prepared data."""
        return inspect.isclass(self.target)

    def has(self, method: Method) -> bool:
        """Whether its class has an optional method."""
        return method in self.methods

    def build(self, settings: Mapping[str, Any]) -> Any:
        """An instance of the class with `settings`, or the function with `settings` bound."""
        if self.is_class:
            return self.target(**settings)
        return lambda *args, **kwargs: self.target(*args, **settings, **kwargs)


@dataclass(frozen=True)
class ModelPlugin(Plugin):
    """A model (see `designopt.model`).

    `inputs` and `conditions` (names of design and scenario values) are ``None`` if any name is accepted.
    `batch_size` is the number of evaluations per call. `takes_prepared`: its class has
    ``prepare_scenario(conditions)``, and its methods receive the result. `takes_options`: its evaluations depend on the
    settings of the study's programs (`solve_design`). `plots` are the parts of the report that it proposes. `fidelity`
    makes an evaluation cheap. The plugin of a checked `Use` contains the declarations for its settings.
    """

    kind = "model"
    inputs: Mapping[str, Field] | None = None
    conditions: Mapping[str, Field] | None = None
    outputs: Mapping[str, Field] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    takes_arrays: bool = False
    takes_rng: bool = False
    takes_prepared: bool = False
    batch_size: int = 1
    takes_options: bool = False
    plots: tuple[str, ...] = ()
    fidelity: Fidelity | None = None

    def build(self, settings: Mapping[str, Any]) -> Any:
        """An object with ``evaluate(design, scenario[, arrays][, prepared][, rng])``; its ``prepare()`` is *not*
        called."""
        return self.target(**settings) if self.is_class else _FunctionModel(self.target, dict(settings))


@dataclass(frozen=True)
class _FunctionModel:
    function: Callable[..., Any]
    settings: Mapping[str, Any]

    def evaluate(self, *args: Any, **extras: Any) -> Any:
        return self.function(*args, **extras, **self.settings)


@dataclass(frozen=True)
class ObjectivePlugin(Plugin):
    """An objective: a number with `unit`, computed from the outputs and arrays in `needs`."""

    kind = "objective"
    needs: tuple[str, ...] = ()
    unit: str = ""


@dataclass(frozen=True)
class SolverPlugin(Plugin):
    """A solver (see `designopt.solver`).

    `needs_budget`: it never ends by itself. `uses_start`: it uses designs of an earlier stage. `needs_objectives`,
    `needs_parameters`: a study with no other solver must have some. `suits_parameters`: from this number of free
    parameters on it is worth its designs. `takes_designs`: it evaluates the designs of its settings `designs` and
    `table`. `objectives`: their number. `gradient`: it uses the model's derivatives; `cheap`: it learns from cheap
    evaluations (`Fidelity`); both ``None`` if its settings decide. Of its `methods`, ``program`` means that it solves
    trajectory problems instead of evaluating designs, ``evaluation_options`` that evaluations share some of its
    settings, ``unit_sample`` that it can sample scenarios, ``indices`` that it has sensitivity indices.
    """

    kind = "solver"
    needs_budget: bool = False
    uses_start: bool = True
    needs_objectives: bool = True
    needs_parameters: bool = True
    suits_parameters: int = 1
    takes_designs: bool = False
    objectives: Literal["one", "several", "any"] = "any"
    gradient: bool | None = False
    cheap: bool | None = False

    def wants_gradient(self, settings: Mapping[str, Any]) -> bool:
        """Whether it uses the model's derivatives with these settings."""
        return bool(self.build(settings).wants_gradient()) if self.gradient is None else self.gradient

    def wants_cheap(self, settings: Mapping[str, Any]) -> bool:
        """Whether it learns from cheap evaluations with these settings."""
        return bool(self.build(settings).wants_cheap()) if self.cheap is None else self.cheap


@dataclass(frozen=True)
class AggregationPlugin(Plugin):
    """An aggregation over scenarios; `weights` returns its derivatives with respect to the values, None if
    unavailable."""

    kind = "aggregation"
    weights: Callable[..., Any] | None = None


@dataclass(frozen=True)
class ReportPlugin(Plugin):
    """A part of the report. It draws the `arrays`; `lacks` returns what else a study lacks for it, in a clause, "" if
    nothing: a note before a run tells of both. Its first figure stands `beside_answer`, also where a front does."""

    kind = "report"
    arrays: tuple[str, ...] = ()
    lacks: Callable[[Any], str] | None = None
    beside_answer: bool = False


@dataclass(frozen=True)
class ExportPlugin(Plugin):
    """An export format. `packages` are import names of libraries beyond the requirements of designopt; `extra` is the
    extra of designopt that installs them."""

    kind = "export"
    packages: tuple[str, ...] = ()
    extra: str = ""


P_co = TypeVar("P_co", bound=Plugin, covariant=True)
P = TypeVar("P", bound=Plugin)


@dataclass(frozen=True)
class Use(Generic[P_co]):
    """A plugin with checked settings, from ``{use: name, ...}`` in a study file."""

    plugin: P_co
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def all_settings(self) -> dict[str, Any]:
        """The settings, completed by the defaults of the others."""
        defaults = {name: f.default for name, f in self.plugin.settings.items() if not f.required}
        return {**defaults, **self.settings}

    def build(self) -> Any:
        """`Plugin.build` with these settings."""
        return self.plugin.build(self.settings)
