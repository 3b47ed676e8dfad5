"""Plugins: how models, objectives, solvers, aggregations and reports are declared, found and built.

A plugin is one decorated function or one small decorated class. Its keyword-only arguments (or annotated class
fields) are its settings; ``typing.Annotated`` with a `Quantity` gives each its unit, meaning and range. From these
annotations come the checks of the study file, the settings table and the JSON Schema.

Installed plugins are found through entry points whose name *is* the plugin's name, so listing them imports nothing.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import hashlib
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, cast

if TYPE_CHECKING:
    import importlib.metadata

Kind = Literal["model", "objective", "solver", "aggregation", "report"]

GROUPS: dict[Kind, str] = {
    "model": "designopt.models",
    "objective": "designopt.objectives",
    "solver": "designopt.solvers",
    "aggregation": "designopt.aggregations",
    "report": "designopt.reports",
}

T = TypeVar("T", bound=Callable[..., Any])


@dataclass(frozen=True)
class Quantity:
    """Unit, meaning and admissible range of a number; put it into ``Annotated[float, Quantity("N/m", "...")]``.

    `unit` is any unit string; ``""`` means a plain number. `gt`, `ge`, `lt`, `le` are in that unit. `sampled` is the
    range over which a sampled scenario varies a condition where the study does not say.
    """

    unit: str = ""
    description: str = ""
    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None
    sampled: tuple[float, float] | None = None


@dataclass(frozen=True)
class Array:
    """What a model's array is: its axes by name, its unit and its meaning."""

    axes: tuple[str, ...]
    unit: str = ""
    description: str = ""


@dataclass(frozen=True)
class InputFile:
    """A file of the user's, taken by content: workers receive the bytes, keys use the digest, never the path."""

    name: str
    content: bytes = field(repr=False)

    @property
    def digest(self) -> str:
        """BLAKE2b-128 of the content, hexadecimal."""
        return hashlib.blake2b(self.content, digest_size=16).hexdigest()

    def text(self) -> str:
        """The content as UTF-8 text; raises `UnicodeDecodeError` for anything else."""
        return self.content.decode("utf-8-sig")


class Diverged(Exception):
    """Raised by a model: the physics has no answer for this design. `reason` is a short identifier for grouping."""

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class InvalidDesign(Exception):
    """Raised by a model: this design is refused before anything is computed; the message names the value."""


class InvalidSetting(ValueError):
    """Raised by a model's `check()`: the setting `name` cannot be used, and why."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message


class PluginError(Exception):
    """A plugin is missing, ambiguous, broken or declared wrongly; the message is one line for the user."""


@dataclass(frozen=True)
class Field:
    """One named value of a plugin: a setting, a design input, a scenario condition or an output."""

    name: str
    annotation: Any
    quantity: Quantity | None
    required: bool
    default: Any = None


@dataclass(frozen=True)
class Plugin:
    """A declared plugin.

    `inputs` and `conditions` (design and scenario values a model understands) are ``None`` when the model accepts any
    name. `needs` are the outputs and arrays that an objective takes. `takes_arrays`, `takes_rng`, `has_gradient` and
    `batch_size` (how many evaluations it takes in one call) are about a model's methods, `wants_gradient` is what a
    store remembers of a solver. `weights` is the derivative of an aggregation. `source` is the file that declares it,
    if any.
    """

    kind: Kind
    name: str
    version: int
    target: Callable[..., Any]
    settings: Mapping[str, Field]
    description: str
    inputs: Mapping[str, Field] | None = None
    conditions: Mapping[str, Field] | None = None
    outputs: Mapping[str, Field] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    unit: str = ""
    takes_arrays: bool = False
    takes_rng: bool = False
    has_gradient: bool = False
    batch_size: int = 1
    wants_gradient: bool = False
    weights: Callable[..., Any] | None = None
    source: Path | None = None

    def build(self, settings: Mapping[str, Any]) -> Any:
        """The plugin ready for use with `settings`: an instance of its class, or its function with settings bound.

        A model comes back as an object with ``evaluate(design, scenario[, arrays][, rng])``; a class with a
        ``prepare()`` method has *not* been prepared yet (see `prepare`).
        """
        if inspect.isclass(self.target):
            return self.target(**settings)
        if self.kind == "model":
            return _FunctionModel(self.target, dict(settings))
        return lambda *args, **kwargs: self.target(*args, **settings, **kwargs)


@dataclass(frozen=True)
class _FunctionModel:
    function: Callable[..., Any]
    settings: Mapping[str, Any]

    def evaluate(self, *args: Any, **given: Any) -> Any:
        return self.function(*args, **given, **self.settings)


@dataclass(frozen=True)
class Use:
    """A plugin with checked settings: what ``{use: name, ...}`` in a study file becomes."""

    plugin: Plugin
    settings: Mapping[str, Any] = field(default_factory=dict)

    def build(self) -> Any:
        """`Plugin.build` with these settings."""
        return self.plugin.build(self.settings)


def wants_gradient(solver: Use) -> bool:
    """Whether a solver with these settings makes use of the model's derivatives."""
    wants = getattr(solver.plugin.target, "wants_gradient", solver.plugin.wants_gradient)
    return bool(solver.build().wants_gradient() if callable(wants) else wants)


# ---------------------------------------------------------------------------------------------------- declaration


def model(
    name: str, *, version: int, arrays: Mapping[str, Array] | None = None, unchecked: bool = False
) -> Callable[[T], T]:
    """Declare a model: ``f(design, scenario[, arrays][, rng], *, settings...)`` or a class with that `evaluate` method.

    `design` and `scenario` are mappings; annotate them with a `TypedDict` to have names and units checked. The
    returned mapping (a `TypedDict` too) names the outputs: numbers. A model that declares `arrays` receives the set of
    wanted array names as its third argument and returns ``(outputs, arrays)``.

    A model with randomness of its own has a last positional argument named ``rng`` and receives a
    `numpy.random.Generator` there, the only source of chance it may use. The generator's seed follows from the study's
    seed and the key of the evaluation: the same design in the same scenario has the same answer wherever and whenever
    it is computed, and another seed of the study makes other evaluations.

    A class may have ``gradient(design, scenario)`` (with a last ``rng``, if its `evaluate` takes one), which returns
    ``{output: {input: derivative}}`` in the model's units for the inputs of real value. It is called after `evaluate`
    for the same design, and only in studies with a solver that wants derivatives. An output or input left out, a value
    that is not finite, or `Diverged` mean that the derivative is not known.

    A class may have ``batch(designs, scenarios[, arrays])`` besides, and a class attribute `batch_size`, the number of
    evaluations that it likes to compute in one call. Row i is design i in scenario i; it returns a sequence with what
    `evaluate` would return for each row, or the exception that `evaluate` would raise. What it says of one row must not
    depend on the others.

    With ``unchecked=True`` outputs may be undeclared (tests and quick experiments only).
    """

    def declare(target: T) -> T:
        call, settings = _shape(target)
        parameters = [p for p in inspect.signature(call).parameters.values() if p.name != "self"]
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        takes_rng = any(p.name == "rng" for p in positional)
        if len(positional) - takes_rng not in (2, 3) or (takes_rng and positional[-1].name != "rng"):
            raise PluginError(
                f"model '{name}': evaluate takes (design, scenario) or (design, scenario, arrays), and 'rng' after them"
            )
        hints = typing.get_type_hints(call, include_extras=True)
        outputs = _typed_dict(hints.get("return"))
        if isinstance(hints.get("return"), types.GenericAlias) and typing.get_origin(hints["return"]) is tuple:
            outputs = _typed_dict(typing.get_args(hints["return"])[0])
        if not outputs and not unchecked:
            raise PluginError(f"model '{name}': annotate what it returns with a TypedDict of numbers with units")
        if taken := [output for output in outputs or {} if output.startswith("d(")]:
            raise PluginError(f"model '{name}': output '{taken[0]}': names that begin with 'd(' are of derivatives")
        batch_size = 1
        if inspect.isclass(target) and callable(getattr(target, "batch", None)):
            batch_size = getattr(target, "batch_size", 0)
            if not isinstance(batch_size, int) or batch_size < 1:
                raise PluginError(
                    f"model '{name}': a model with 'batch' says its 'batch_size', a whole number from 1 on"
                )
            if takes_rng:
                raise PluginError(
                    f"model '{name}': a model with 'rng' has one generator for each evaluation, no 'batch'"
                )
        _register(
            target,
            Plugin(
                kind="model",
                name=name,
                version=version,
                target=target,
                settings=settings,
                description=_doc(target),
                inputs=_typed_dict(hints.get(positional[0].name)),
                conditions=_typed_dict(hints.get(positional[1].name)),
                outputs=outputs or {},
                arrays=dict(arrays or {}),
                takes_arrays=len(positional) - takes_rng == 3,
                takes_rng=takes_rng,
                has_gradient=inspect.isclass(target) and callable(getattr(target, "gradient", None)),
                batch_size=batch_size,
                source=_source(target),
            ),
        )
        return target

    return declare


def objective(name: str, *, version: int) -> Callable[[T], T]:
    """Declare an objective: a function whose positional arguments name model outputs or arrays; returns a number.

    Annotate the return as ``Annotated[float, Quantity(unit, meaning)]``. Keyword-only arguments are settings.
    """

    def declare(target: T) -> T:
        parameters = inspect.signature(target).parameters.values()
        hints = typing.get_type_hints(target, include_extras=True)
        quantity = _quantity(hints.get("return"))
        if quantity is None:
            raise PluginError(
                f"objective '{name}': annotate what it returns: Annotated[float, Quantity(unit, meaning)]"
            )
        _register(
            target,
            Plugin(
                kind="objective",
                name=name,
                version=version,
                target=target,
                settings=_keyword_settings(target),
                description=_doc(target),
                needs=tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY),
                unit=quantity.unit,
                source=_source(target),
            ),
        )
        return target

    return declare


def solver(name: str, *, version: int) -> Callable[[T], T]:
    """Declare a solver: a class with ``solve(problem, evaluate, rng, start)``; its annotated fields are settings.

    It may have ``check(problem)``, which raises `InvalidSetting` for settings that do not fit the problem;
    ``minimum_budget(problem)``, the evaluations below which it cannot work; and the class attributes ``needs_budget``
    (it never ends by itself; False when absent), ``uses_start`` (False when it cannot make use of designs of an
    earlier stage) and ``wants_gradient`` (True to have the model's derivatives recorded with every evaluation of the
    study, see `Problem.gradients`; or a method without arguments that tells it for the settings).

    A solver that solves programs instead of evaluating designs has ``program(problem)``, which gives a
    `designopt.problem.Programs`: it is built on every worker, and ``evaluate.programs`` has it solve what `solve` asks.

    `solve` may return a short sentence that tells why it ended by itself, or None when there is nothing to tell.
    """

    def declare(target: T) -> T:
        if not inspect.isclass(target) or not callable(getattr(target, "solve", None)):
            raise PluginError(f"solver '{name}': a solver is a class with solve(problem, evaluate, rng, start)")
        return _plain("solver", name, version)(target)

    return declare


def aggregation(name: str, *, version: int, weights: Callable[..., Any] | None = None) -> Callable[[T], T]:
    """Declare an aggregation: ``f(values, *, settings...)`` (designs, scenarios) to (designs,); larger is worse.

    `weights`, with the same arguments, gives its derivative by each of the values (designs, scenarios). Without it
    solvers that use gradients take differences.
    """
    return _plain("aggregation", name, version, weights=weights)


def report(name: str, *, version: int) -> Callable[[T], T]:
    """Declare a part of the report: ``f(result, *, settings...)`` that returns a `designopt.report.Section` or None."""
    return _plain("report", name, version)


def _plain(kind: Kind, name: str, version: int, **options: Any) -> Callable[[T], T]:
    def declare(target: T) -> T:
        _, settings = _shape(target)
        _register(
            target, Plugin(kind, name, version, target, settings, _doc(target), source=_source(target), **options)
        )
        return target

    return declare


def _shape(target: Callable[..., Any]) -> tuple[Callable[..., Any], dict[str, Field]]:
    """The callable that does the work, and the settings, of a function or a class (made a frozen dataclass)."""
    if not inspect.isclass(target):
        return target, _keyword_settings(target)
    if "__dataclass_fields__" not in vars(target):  # a base class that is one does not make this class one
        dataclass(kw_only=True)(target)
    hints = typing.get_type_hints(target, include_extras=True)
    settings = {}
    for item in dataclasses.fields(cast(Any, target)):
        if not item.init:
            continue
        required = item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
        default = item.default if item.default is not dataclasses.MISSING else None
        if item.default_factory is not dataclasses.MISSING:
            default = item.default_factory()
        settings[item.name] = Field(item.name, hints[item.name], _quantity(hints[item.name]), required, default)
    return getattr(target, "evaluate", target), settings


def _keyword_settings(function: Callable[..., Any]) -> dict[str, Field]:
    hints = typing.get_type_hints(function, include_extras=True)
    settings = {}
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.KEYWORD_ONLY:
            required = p.default is p.empty
            hint = hints.get(p.name, Any)
            settings[p.name] = Field(p.name, hint, _quantity(hint), required, None if required else p.default)
    return settings


def _typed_dict(hint: Any) -> dict[str, Field] | None:
    """Fields of a TypedDict annotation, or None for any other annotation."""
    if not typing.is_typeddict(hint):
        return None
    hints = typing.get_type_hints(hint, include_extras=True)
    fields = {}
    for name, h in hints.items():
        required = name in hint.__required_keys__
        if typing.get_origin(h) in (typing.Required, typing.NotRequired):
            # `__required_keys__` does not know them where annotations are kept as text (PEP 563).
            required = typing.get_origin(h) is typing.Required
            h = typing.get_args(h)[0]
        fields[name] = Field(name, h, _quantity(h), required)
    return fields


def _quantity(hint: Any) -> Quantity | None:
    """The `Quantity` of an annotation; that of ``Annotated[...] | None`` counts too."""
    if typing.get_origin(hint) is Annotated:
        return next((m for m in typing.get_args(hint)[1:] if isinstance(m, Quantity)), None)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next((q for q in map(_quantity, typing.get_args(hint)) if q), None)
    return None


def _doc(target: Any) -> str:
    return inspect.cleandoc(target.__doc__ or "")


def _source(target: Any) -> Path | None:
    try:
        return Path(inspect.getfile(target)).resolve()
    except (TypeError, OSError):
        return None


# ------------------------------------------------------------------------------------------------------ discovery

_declared: dict[tuple[Kind, str], Plugin] = {}


def _register(target: Any, plugin: Plugin) -> None:
    if not plugin.name.isidentifier():
        raise PluginError(f"{plugin.kind} '{plugin.name}': a plugin's name is letters, digits and underscores")
    target.__designopt__ = plugin
    _declared[plugin.kind, plugin.name] = plugin


@dataclass(frozen=True)
class Listed:
    """An installed plugin as its entry point tells it, nothing imported."""

    kind: Kind
    name: str
    distribution: str
    version: str
    entry: importlib.metadata.EntryPoint = field(repr=False)


def installed(kind: Kind | None = None) -> Iterator[Listed]:
    """Installed plugins of `kind` (all kinds for None), without importing any."""
    return (listed for listed in _installed(tuple(sys.path)) if kind in (None, listed.kind))


@functools.lru_cache(maxsize=2)
def _installed(path: tuple[str, ...]) -> tuple[Listed, ...]:
    """The plugins found on the import path `path`: reading what is installed takes longer than checking a study."""
    import importlib.metadata  # costs as much as all else that is imported at start

    entries = importlib.metadata.entry_points()
    about: dict[int, tuple[str, str]] = {}
    found = []
    for kind in GROUPS:
        for entry in sorted(entries.select(group=GROUPS[kind]), key=lambda e: e.name):
            dist = entry.dist
            if id(dist) not in about:
                about[id(dist)] = (dist.name, dist.version) if dist else ("?", "?")
            found.append(Listed(kind, entry.name, *about[id(dist)], entry))
    return tuple(found)


def names(kind: Kind) -> list[str]:
    """All known plugin names of `kind`: installed, and declared in this process."""
    return sorted({listed.name for listed in installed(kind)} | {name for k, name in _declared if k == kind})


def find(kind: Kind, name: str) -> Plugin:
    """The plugin `name` (or ``distribution:name``); imports its package if need be.

    Raises `PluginError` with one line for the user when it is unknown (nearest names offered), ambiguous, broken, or
    declares another name than its entry point.
    """
    distribution, _, bare = name.rpartition(":")
    entries = [e for e in installed(kind) if e.name == bare and distribution in ("", e.distribution)]
    if len({e.distribution for e in entries}) > 1:
        owners = " and ".join(sorted({e.distribution for e in entries}))
        raise PluginError(f"{kind} '{bare}' is offered by {owners}; write 'distribution:{bare}' to choose")
    declared = _declared.get((kind, bare))
    if declared and not distribution:
        return declared
    if not entries:
        known = names(kind)
        near = closest(bare, known)
        hint = f"; did you mean '{near}'?" if near else ""
        raise PluginError(f"no plugin named '{name}'{hint} (installed: {', '.join(known) or 'none'})")
    found = entries[0]
    try:
        plugin = getattr(found.entry.load(), "__designopt__", None)
    except (Exception, SystemExit) as error:
        raise PluginError(f"{found.name} ({found.distribution} {found.version}): {_one_line(error)}") from error
    if not isinstance(plugin, Plugin) or plugin.kind != kind:
        raise PluginError(f"{found.name} ({found.distribution}): entry point does not lead to a {kind} plugin")
    if plugin.name != found.name:
        raise PluginError(f"{found.name} ({found.distribution}): the plugin calls itself '{plugin.name}'")
    return plugin


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was most likely meant to be, the alphabetically first of equals; None for no idea."""
    near = difflib.get_close_matches(word, sorted(known), n=9)
    return min(near, key=lambda k: (-difflib.SequenceMatcher(None, k, word).ratio(), k), default=None)


def load_file(name: str, content: bytes) -> None:
    """Run the Python file `content`, typed by the user as ``--plugin FILE``, so that its plugins are declared."""
    digest = hashlib.blake2b(content, digest_size=8).hexdigest()
    module_name = f"designopt_plugin_{digest}"
    if module_name in sys.modules:
        return
    module = types.ModuleType(module_name)
    module.__file__ = name
    sys.modules[module_name] = module
    try:
        exec(compile(content, name, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[module_name]
        raise PluginError(f"{name}: {_one_line(error)}") from error


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
