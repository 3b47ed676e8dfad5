"""Permission to run code outside Python: programs and compiled models that the user allows by name.

A study file or a store never runs code by itself. A model that starts a program, or loads compiled code from a file of
the study, has two methods:

- ``runs()`` returns a `ForeignCode` for each program or file, by the name under which the user allows it;
- ``prepare(permission)`` receives the `Permission`. It is called only if the user has allowed every name, with
  ``--allow NAME``, ``--allow NAME=PATH`` or ``run(allow=[...])``; otherwise `CannotRun` ends the command.

`permission_of` makes this decision for every evaluation, wherever it takes place. Workers receive the permission with
the problem, and find programs without a path on their own PATH. ``check()``, ``declares()`` and the like must not run
anything. A store contains the names, for the command that continues a run, but no permission."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from designopt.plugin.discovery import closest
from designopt.plugin.kinds import ModelPlugin, Use
from designopt.plugin.values import PluginError


class CannotRun(PluginError):
    """The user has not allowed what the model runs, or the program does not exist; the message says which option is
    missing."""


@dataclass(frozen=True)
class ForeignCode:
    """A program by `name`, or (`in_study`) a file of the study that contains compiled code."""

    name: str
    in_study: bool = False

    @property
    def option(self) -> str:
        """The text of ``--allow``: the name, with ``=PATH`` for a program that is not on PATH of this machine."""
        return self.name if self.in_study or shutil.which(self.name) else f"{self.name}=PATH"


@dataclass(frozen=True)
class Permission:
    """The programs that a model may run, with the limits of an evaluation.

    `programs` are the allowed names with their paths, "" for a program to be found on PATH; a model receives resolved
    paths. `timeout` is the time limit of an evaluation (s), None for no limit. `keeps_failed` names the arrays that are
    stored of failed evaluations.
    """

    programs: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None
    keeps_failed: tuple[str, ...] = ()

    @classmethod
    def from_options(cls, allow: Sequence[str]) -> Permission:
        """The permission from texts ``NAME`` or ``NAME=PATH``; a relative path is taken from the current folder.

        Raises `ValueError`.
        """
        if isinstance(allow, str):
            raise ValueError(f"allow is a list: write allow=[{allow!r}]")
        programs: dict[str, str] = {}
        for text in allow:
            name, equals, path = str(text).partition("=")
            if not name or "/" in name or "\\" in name or (equals and not path):
                raise ValueError(f"write NAME, or NAME=PATH for a program that is not on PATH; not '{text}'")
            if path == "PATH" and not Path(path).exists():  # pasted from a printed command
                raise ValueError(f"write the file of '{name}' in place of PATH: a store does not record it")
            if name in programs:
                raise ValueError(f"'{name}' is allowed twice")
            programs[name] = str(Path(path).absolute()) if path else ""
        return cls(programs)


def foreign_code(model: Use[ModelPlugin], built: Any = None) -> tuple[ForeignCode, ...]:
    """The programs and compiled files that `model` runs; `built` is an existing instance, if any."""
    if not model.plugin.has("runs"):
        return ()
    return tuple((built if built is not None else model.build()).runs())


def refuse_not_allowed(model: Use[ModelPlugin], permission: Permission, built: Any = None) -> None:
    """Raise `CannotRun` if `permission` does not contain all that `model` runs."""
    for item in foreign_code(model, built):
        if item.name not in permission.programs:
            raise CannotRun(_refusal(model.plugin.name, item, permission))
        if item.in_study and permission.programs[item.name]:
            raise CannotRun(f"'{item.name}' is a file of the study; write --allow {item.name}, without a path")


def permission_of(model: Use[ModelPlugin], permission: Permission, built: Any = None) -> Permission:
    """The part of `permission` that concerns `model`, with resolved paths.

    Raises `CannotRun`, also for an allowed program that this machine does not have.
    """
    refuse_not_allowed(model, permission, built)
    paths = {}
    for item in foreign_code(model, built):
        path = permission.programs[item.name]
        if not item.in_study:
            executable = shutil.which(path or item.name)
            if executable is None:
                cause = f"'{path}' is not an executable file" if path else f"the program '{item.name}' is not on PATH"
                raise CannotRun(f"{cause}; install it, or say where it is: --allow {item.name}=PATH")
            path = os.path.abspath(executable)
        paths[item.name] = path
    return replace(permission, programs=paths)


def ready_model(model: Use[ModelPlugin], permission: Permission) -> Any:
    """`model` with its settings, after its `prepare`, if it has one. Raises as `permission_of`."""
    built = model.build()
    if model.plugin.has("runs"):
        built.prepare(permission_of(model, permission, built))
    elif model.plugin.has("prepare"):
        built.prepare()
    return built


def _refusal(model: str, item: ForeignCode, permission: Permission) -> str:
    near = closest(item.name, permission.programs)
    instead = f" instead of --allow {near}" if near else ""
    subject = f"the compiled code in '{item.name}'" if item.in_study else f"the program '{item.name}'"
    why = "" if item.option == item.name else " (it is not on PATH: write its file after '=')"
    return (
        f"model '{model}' runs {subject}, which is not allowed; if you trust this study, add --allow {item.option}{why}"
        f"{instead} (in Python: allow=['{item.option}'])"
    )


def allow_options(items: Sequence[ForeignCode]) -> str:
    """The options that allow `items`, each after a space."""
    return "".join(f" --allow {item.option}" for item in items)
