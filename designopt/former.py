"""Renamed public names: the former name works for one version, with a warning that gives the new one."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

C = TypeVar("C", bound=type)


def former_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """A ``__getattr__`` for `module` that maps former `names` to their new ones. It raises `AttributeError` for other
    names."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        warnings.warn(f"{module}.{name} is now called {names[name]}", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return find


def former_arguments(**names: str) -> Callable[[C], C]:
    """Let a class accept former names of constructor arguments; `names` maps each to its new one."""

    def renamed(cls: C) -> C:
        construct: Callable[..., None] = vars(cls)["__init__"]

        @functools.wraps(construct)
        def init(self: Any, *args: Any, **arguments: Any) -> None:
            for former in names.keys() & arguments.keys():
                text = f"{cls.__name__}: the argument '{former}' is now called '{names[former]}'"
                warnings.warn(text, DeprecationWarning, stacklevel=2)
                arguments[names[former]] = arguments.pop(former)
            construct(self, *args, **arguments)

        setattr(cls, "__init__", init)  # noqa: B010
        return cls

    return renamed
