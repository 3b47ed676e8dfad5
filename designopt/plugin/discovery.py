"""Discovery of plugins: installed ones through entry points, without imports, and those declared in this process.

The name of an entry point *is* the plugin's name, so listing plugins imports nothing.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import functools
import hashlib
import re
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, overload

from designopt.counts import first_of
from designopt.plugin.beside import folder_hint, importable, path_of, plugin_file_of
from designopt.plugin.entry_points import EntryPoint, entry_points
from designopt.plugin.error_location import error_line, raise_location
from designopt.plugin.kinds import (
    AggregationPlugin,
    ExportPlugin,
    Kind,
    ModelPlugin,
    ObjectivePlugin,
    Plugin,
    ReportPlugin,
    SolverPlugin,
)
from designopt.plugin.values import PluginError, UnknownPlugin

GROUPS: dict[Kind, str] = {
    "model": "designopt.models",
    "objective": "designopt.objectives",
    "solver": "designopt.solvers",
    "aggregation": "designopt.aggregations",
    "report": "designopt.reports",
    "export": "designopt.exports",
}

#: Number of names up to which a message has all of them, and how many it has otherwise.
LISTED, FIRST = 24, 8
#: Prefix of the module names of plugin files.
FILES = "designopt_plugin_"

_declared_plugins: dict[tuple[Kind, str], Plugin] = {}
_loading: list[str] = []
#: Functions of loaded plugin files by name, and the function that makes a model of one (see `plain`).
_plain: dict[str, types.FunctionType] = {}
#: Declared plugins and plain functions of each loaded file, by module name.
_of_file: dict[str, tuple[dict[tuple[Kind, str], Plugin], dict[str, types.FunctionType]]] = {}
#: Modules beside plugin files that are being loaded, by file and name.
_beside: dict[str, dict[str, types.ModuleType]] = {}
_models_of_functions: list[Callable[[Any], Plugin]] = []


def make_models_of_functions_by(make: Callable[[Any], Plugin]) -> None:
    """Set the function that makes a model from a plain function."""
    _models_of_functions[:] = [make]


def register(target: Any, plugin: Plugin) -> None:
    if not plugin.name.isidentifier():
        raise PluginError(f"{plugin.kind} '{plugin.name}': a plugin's name has only letters, digits and underscores")
    target.__designopt__ = plugin
    _declared_plugins[plugin.kind, plugin.name] = plugin


@dataclass(frozen=True)
class InstalledPlugin:
    """An installed plugin as described by its entry point, without an import."""

    kind: Kind
    name: str
    distribution: str
    version: str
    entry: EntryPoint = field(repr=False)


def installed_plugins(kind: Kind | None = None) -> Iterator[InstalledPlugin]:
    """Installed plugins of `kind` (all kinds for None), without importing any."""
    return (plugin for plugin in _plugins_on_path(tuple(sys.path)) if kind in (None, plugin.kind))


@functools.lru_cache(maxsize=2)
def _plugins_on_path(path: tuple[str, ...]) -> tuple[InstalledPlugin, ...]:
    """The plugins installed on the import path `path`; cached, because reading the metadata takes longer than checking
    a study."""
    entries = sorted(entry_points(path, "designopt."), key=lambda entry: entry.name)
    return tuple(
        InstalledPlugin(kind, entry.name, entry.distribution, entry.version, entry)
        for kind, group in GROUPS.items()
        for entry in entries
        if entry.group == group
    )


def is_installed(plugin: Plugin) -> bool:
    """Whether another process finds `plugin` through its entry point."""
    package = str(getattr(plugin.target, "__module__", "")).partition(".")[0]
    return any(
        other_plugin.name == plugin.name and other_plugin.entry.module.partition(".")[0] == package
        for other_plugin in installed_plugins(plugin.kind)
    )


def names(kind: Kind) -> list[str]:
    """All plugin names of `kind`: installed, and declared in this process."""
    return sorted(
        {plugin.name for plugin in installed_plugins(kind)} | {name for k, name in _declared_plugins if k == kind}
    )


@overload
def find(kind: Literal["model"], name: str) -> ModelPlugin: ...
@overload
def find(kind: Literal["objective"], name: str) -> ObjectivePlugin: ...
@overload
def find(kind: Literal["solver"], name: str) -> SolverPlugin: ...
@overload
def find(kind: Literal["aggregation"], name: str) -> AggregationPlugin: ...
@overload
def find(kind: Literal["report"], name: str) -> ReportPlugin: ...
@overload
def find(kind: Literal["export"], name: str) -> ExportPlugin: ...
@overload
def find(kind: Kind, name: str) -> Plugin: ...
def find(kind: Kind, name: str) -> Plugin:
    """The plugin `name` (or ``distribution:name``); imports its package if necessary.

    Raises `PluginError`, in one line, if the name is unknown (with the nearest names), ambiguous, broken, or differs
    from that of its entry point.
    """
    distribution, _, bare = name.rpartition(":")
    entries = [e for e in installed_plugins(kind) if e.name == bare and distribution in ("", e.distribution)]
    if len({e.distribution for e in entries}) > 1:
        owners = " and ".join(sorted({e.distribution for e in entries}))
        raise PluginError(f"{kind} '{bare}' is offered by {owners}; write 'distribution:{bare}' to choose")
    known_plugin = _declared_plugins.get((kind, bare))
    if known_plugin and not distribution:
        return known_plugin
    if not entries and kind == "model" and bare in _plain and not distribution:
        return _models_of_functions[0](_plain[bare])
    if not entries:
        declared_plugin = names(kind)
        near = closest(bare, declared_plugin)
        hint = f"; did you mean '{near}'?" if near else ""
        raise UnknownPlugin(f"no plugin named '{name}'", f"{hint} (installed: {_names_text(kind, declared_plugin)})")
    matches = entries[0]
    try:
        plugin = getattr(matches.entry.load(), "__designopt__", None)
    except (Exception, SystemExit) as error:
        raise PluginError(f"{matches.name} ({matches.distribution} {matches.version}): {_one_line(error)}") from error
    if not isinstance(plugin, Plugin) or plugin.kind != kind:
        raise PluginError(f"{matches.name} ({matches.distribution}): the entry point is not a {kind} plugin")
    if plugin.name != matches.name:
        raise PluginError(f"{matches.name} ({matches.distribution}): the plugin calls itself '{plugin.name}'")
    return plugin


#: Likeness (0 to 1) of two words from which one is suggested for the other.
_CLOSE = 0.6


def closest(word: str, words: Iterable[str]) -> str | None:
    """The known word closest to `word`, without regard to case and to the order of its parts (``R_knee``, ``knee_r``),
    alphabetically first among ties; None if none is close."""
    matchers = [(form, difflib.SequenceMatcher(None, b=form(word))) for form in (str.casefold, _sorted_parts)]
    likeness = {
        candidate: max(_likeness(matcher, form(candidate)) for form, matcher in matchers) for candidate in words
    }
    near = [candidate for candidate, ratio in likeness.items() if ratio >= _CLOSE]
    return min(near, key=lambda candidate: (-likeness[candidate], candidate), default=None)


def _sorted_parts(name: str) -> str:
    """The parts of a name in alphabetical order."""
    return "_".join(sorted(re.split(r"[\W_]+", name.casefold())))


def _likeness(matcher: difflib.SequenceMatcher[str], name: str) -> float:
    """The likeness of `name` and the second text of the matcher, from 0 to 1; 0 where a quick bound of it is below
    `_CLOSE`."""
    matcher.set_seq1(name)
    if matcher.real_quick_ratio() < _CLOSE or matcher.quick_ratio() < _CLOSE:
        return 0.0
    return matcher.ratio()


class RunBegins(BaseException):
    """A plugin file has reached a statement that runs a study: everything that the study needs is declared."""


def refuse_while_loading() -> None:
    """Raise `RunBegins` while a plugin file is loading: it must not run a study."""
    if _loading:
        raise RunBegins


def _names_text(kind: Kind, plugins: Collection[str]) -> str:
    """The names of plugins in a message; of very many the first ones, and the command that lists all."""
    if len(plugins) <= LISTED:
        return ", ".join(plugins) or "none"
    return f"{first_of(plugins, FIRST)}: designopt list {kind}s"


def load_file(name: str, content: bytes) -> None:
    """Run the Python file `content`, given as ``--plugin FILE``, so that its plugins are declared; or a module beside
    one (see `beside`), which the files after it can import.

    A script that runs a study without the guard ``if __name__ == "__main__":`` is executed up to that statement; of the
    rest, only functions, classes and imports are executed. A plain function of the file serves as the model of its
    name. The same content runs once; its declarations replace those of files loaded before. Raises `PluginError` if the
    file fails.
    """
    file, beside = plugin_file_of(name)
    modules = _beside.setdefault(file, {}) if beside else _beside.pop(file, {})
    digest = hashlib.blake2b(content, digest_size=8)
    for loaded_module in modules.values():
        digest.update(loaded_module.__name__.encode())
    module_name = f"{FILES}{digest.hexdigest()}"
    if module_name in sys.modules:
        if beside:
            modules[beside] = sys.modules[module_name]
        _declare_again(module_name)
        return
    module = types.ModuleType(module_name)
    module.__file__ = path = path_of(name)
    sys.modules[module_name] = module
    _loading.append(name)
    try:
        with importable(modules):
            exec(compile(content, path, "exec"), module.__dict__)
    except RunBegins as begins:
        frame = begins.__traceback__.tb_next if begins.__traceback__ is not None else None
        _define_rest(module, name, content, frame.tb_lineno if frame is not None else 0)
    except (Exception, SystemExit) as error:
        del sys.modules[module_name]
        if isinstance(error, SyntaxError) and not path.endswith(".py"):
            raise PluginError(
                f"{path} is not a Python file; --plugin takes the Python file that declares a plugin"
            ) from error
        line = error_line(error) if raise_location(error) else f"{path}: {error_line(error)}"
        raise PluginError(line + folder_hint(path, error)) from error
    finally:
        _loading.pop()
    if beside:
        modules[beside] = module
    functions = {k: v for k, v in vars(module).items() if isinstance(v, types.FunctionType)}
    plain_functions = {
        k: f for k, f in functions.items() if f.__module__ == module_name and not hasattr(f, "__designopt__")
    }
    plugins = {key: plugin for key, plugin in _declared_plugins.items() if plugin.target.__module__ == module_name}
    _of_file[module_name] = plugins, plain_functions
    _declare_again(module_name)


def _declare_again(module_name: str) -> None:
    """Replace declarations of other files under the same names by those of this file."""
    plugins, plain = _of_file.get(module_name, ({}, {}))
    for name in plain:
        earlier_plugin = _declared_plugins.get(("model", name))
        if earlier_plugin is not None and earlier_plugin.target.__module__.startswith(FILES):
            del _declared_plugins["model", name]
    _plain.update(plain)
    _declared_plugins.update(plugins)


def _define_rest(module: types.ModuleType, name: str, content: bytes, line: int) -> None:
    """Execute the definitions and imports below `line`, as far as they work without the skipped statements."""
    for statement in ast.parse(content, name).body:
        if statement.lineno > line and isinstance(
            statement, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
        ):
            with contextlib.suppress(Exception, RunBegins):
                exec(compile(ast.Module([statement], []), name, "exec"), module.__dict__)


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
