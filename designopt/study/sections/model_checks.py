"""Second pass: the model's checks of space and scenarios, `check_space` and `check_scenario`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from designopt.plugin import InvalidSetting, ModelPlugin, Use
from designopt.study.language.findings import Path
from designopt.study.sections.context import Context
from designopt.study.sections.scenarios.files import SOURCES
from designopt.study.study import DesignVariable, Scenario

#: The path of a scenario's section, and the section.
Place = tuple[Path, Mapping[str, Any]]


def space(ctx: Context, model: Use[ModelPlugin], parameters: Sequence[DesignVariable]) -> None:
    """Call the model's check of these parameters, once they are valid by themselves."""
    if not model.plugin.has_check_space or not parameters or not ctx.sound(("space",)):
        return
    given = {p.name: p for p in parameters}
    for error in _said(ctx, model, model.build().check_space, given):
        if error.name in given:
            ctx.add(("space", error.name), error.message, key="")
        else:
            ctx.add(("space",), str(error))


def scenarios(ctx: Context, model: Use[ModelPlugin], made: Sequence[Scenario], given: Any, path: Path) -> None:
    """Call the model's check of each scenario `made` from the section `given` at `path`.

    For a sample only the first mistake is reported: it has one position in the file.
    """
    if not model.plugin.has_check_scenario or given is None:
        return
    check = model.build().check_scenario
    reported: set[Path] = set()
    place = _places(given, path)
    for scenario in made:
        here, section = place(scenario.name)
        if here in reported or ctx.full or not ctx.sound(here):
            continue
        for error in _said(ctx, model, check, scenario.values):
            reported.add(here)
            if error.name in section and "use" not in section:
                ctx.add((*here, error.name), f"in scenario '{scenario.name}': {error.message}")
            else:
                ctx.add(here, f"in scenario '{scenario.name}': {error}", at="use" if "use" in section else "name")


def _said(ctx: Context, model: Use[ModelPlugin], check: Any, about: Any) -> Iterable[InvalidSetting]:
    """The mistakes that the model returns or raises; an exception in its code is one."""
    found: list[InvalidSetting] = []
    try:
        found.extend(check(about) or ())
    except InvalidSetting as error:
        found.append(error)
    except Exception as error:
        ctx.failed(model.plugin, error, ("model",))
    return found


def _places(given: Any, path: Path) -> Callable[[str], Place]:
    """Position of each scenario by name."""
    if isinstance(given, Mapping):
        return lambda name: (path, given)
    named: dict[str, Place] = {}
    several: list[Place] = []
    for position, section in enumerate(given):
        if not isinstance(section, Mapping):
            continue
        if isinstance(section.get("use"), str):
            several.append(((*path, position), section))
        elif isinstance(name := section.get("name"), str):
            named.setdefault(name, ((*path, position), section))

    def place(name: str) -> Place:
        if name in named:
            return named[name]
        for here, section in reversed(several):
            if section["use"] in SOURCES or name.startswith(f"{section.get('name', 'sampled')}_"):
                return here, section
        return path, {}

    return place
