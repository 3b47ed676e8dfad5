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
    if not model.plugin.has("check_space") or not parameters or not ctx.sound(("space",)):
        return
    by_name = {p.name: p for p in parameters}
    for error in _mistakes(ctx, model, model.build().check_space, by_name):
        if error.name in by_name:
            ctx.add(("space", error.name), error.message, key="")
        else:
            ctx.add(("space",), str(error))


def scenarios(ctx: Context, model: Use[ModelPlugin], valid: Sequence[Scenario], sections: Any, path: Path) -> None:
    """Call the model's check of each scenario `valid` from the section `sections` at `path`.

    For a sample only the first mistake is reported: it has one position in the file. A mistake may be in a setting.
    """
    if not model.plugin.has("check_scenario") or sections is None:
        return
    check = model.build().check_scenario
    reported_paths: set[Path] = set()
    reported_settings: set[tuple[str, str | None]] = set()
    section_of = _positions(sections, path)
    for scenario in valid:
        section_path, section = section_of(scenario.name)
        if section_path in reported_paths or ctx.full or not ctx.sound(section_path):
            continue
        for error in _mistakes(ctx, model, check, scenario.values):
            if error.name.partition(".")[0] in model.plugin.settings.keys() - (model.plugin.conditions or {}).keys():
                if (error.name, error.key) not in reported_settings:  # the same for each trial
                    ctx.setting(error, model.plugin, ("model",))
                    reported_settings.add((error.name, error.key))
                continue
            reported_paths.add(section_path)
            if error.name in section and "use" not in section:
                ctx.add((*section_path, error.name), f"in scenario '{scenario.name}': {error.message}")
            else:
                ctx.add(
                    section_path, f"in scenario '{scenario.name}': {error}", at="use" if "use" in section else "name"
                )


def _mistakes(ctx: Context, model: Use[ModelPlugin], check: Any, about: Any) -> Iterable[InvalidSetting]:
    """The mistakes that the model returns or raises; an exception in its code is one."""
    mistakes: list[InvalidSetting] = []
    try:
        mistakes.extend(check(about) or ())
    except InvalidSetting as error:
        mistakes.append(error)
    except Exception as error:
        ctx.add_failure(model.plugin, error, ("model",))
    return mistakes


def _positions(sections: Any, path: Path) -> Callable[[str], Place]:
    """Position of each scenario by name."""
    if isinstance(sections, Mapping):
        return lambda name: (path, sections)
    places_by_name: dict[str, Place] = {}
    several: list[Place] = []
    for position, section in enumerate(sections):
        if not isinstance(section, Mapping):
            continue
        if isinstance(section.get("use"), str):
            several.append(((*path, position), section))
        elif isinstance(name := section.get("name"), str):
            places_by_name.setdefault(name, ((*path, position), section))

    def section_of(name: str) -> Place:
        if name in places_by_name:
            return places_by_name[name]
        for section_path, section in reversed(several):
            if section["use"] in SOURCES or name.startswith(f"{section.get('name', 'sampled')}_"):
                return section_path, section
        return path, {}

    return section_of
