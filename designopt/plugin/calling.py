"""Calls of plugins: an exception or a wrong return value becomes a `PluginFailed` that names the plugin's line."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from designopt.plugin.error_location import error_line
from designopt.plugin.kinds import Plugin
from designopt.plugin.values import PluginFailed

_KINDS = {"report": "report part", "export": "export format"}


def plugin_title(plugin: Plugin) -> str:
    """``aggregation 'cvar'``."""
    return f"{_KINDS.get(plugin.kind, plugin.kind)} '{plugin.name}'"


def code_of(plugin: Plugin) -> str:
    """``road.py:12: model 'road'``: the position and name of the plugin's code."""
    function = getattr(plugin.target, "evaluate", plugin.target)
    code = getattr(inspect.unwrap(function), "__code__", None)
    location = f"{Path(code.co_filename).name}:{code.co_firstlineno}: " if code is not None else ""
    return f"{location}{plugin_title(plugin)}"


def value_text(value: Any) -> str:
    """Short description of a plugin's return value."""
    if isinstance(value, int) and abs(value) >= 10**60:
        return "an integer of more than 60 digits"
    value = float(value) if isinstance(value, float) else value  # not np.float64(...)
    return f"{value!r:.60}" if value is None or isinstance(value, (str, int, float)) else f"a {type(value).__name__}"


def is_own(plugin: Plugin) -> bool:
    """Whether a plugin belongs to designopt itself."""
    return plugin.target.__module__.startswith("designopt.")


@contextlib.contextmanager
def calling(plugin: Plugin, *exceptions: type[BaseException]) -> Iterator[None]:
    """Exceptions of the plugin's code become `PluginFailed`, except `exceptions`; those of designopt's own plugins stay
    as they are, since they are defects of designopt."""
    try:
        yield
    except (PluginFailed, *exceptions):  # type: ignore[misc]
        raise
    except Exception as error:
        if is_own(plugin):
            raise
        raise PluginFailed(f"the {plugin_title(plugin)} failed: {error_line(error, plugin.source)}") from error


def wrong_return(plugin: Plugin, text: str) -> PluginFailed:
    """The exception for a wrong return value, described by `text`."""
    return PluginFailed(f"{code_of(plugin)} {text}")
