"""Shared state of the second pass: findings, the reader of files, and the lookup of plugin sections."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

from designopt.files import InputFile
from designopt.plugin import (
    Field,
    InvalidSetting,
    Kind,
    ModelPlugin,
    Plugin,
    PluginError,
    Use,
    closest,
    find,
    names,
    with_declared,
)
from designopt.plugin.error_location import error_line
from designopt.plugin.kinds import P
from designopt.study.language import units
from designopt.study.language.checking.part import Part
from designopt.study.language.checking.settings import field_type, validate
from designopt.study.language.checking.values import check
from designopt.study.language.errors import StudyError
from designopt.study.language.expressions.expression import Expression
from designopt.study.language.expressions.grammar import ExpressionError
from designopt.study.language.files import Files
from designopt.study.language.findings import MOST, Finding, Path
from designopt.study.language.units import Amount, UnitError


@dataclass
class Context:
    """State of one check.

    Invalid parts of the first pass are None in the second pass; the methods return None for them, without a finding.

    `folder` is that of the study file, if it has one; `on_command_line` states whether the user gave the value at a
    path on the command line or in Python, not in a file. `plugins` caches the plugins (or the error). `tables` are the
    files whose rows were used.
    """

    read: Files
    folder: pathlib.Path | None = None
    on_command_line: Callable[[Path], bool] = lambda path: False
    findings: list[Finding] = field(default_factory=list)
    plugins: dict[tuple[Kind, str], Plugin | str] = field(default_factory=dict)
    tables: list[InputFile] = field(default_factory=list)

    def add(
        self,
        path: Path,
        message: str,
        *,
        key: str | None = None,
        part: tuple[int, int] | None = None,
        at: str | None = None,
        contradiction: Path | None = None,
    ) -> None:
        """Record a finding."""
        self.findings.append(Finding(path, message, key, part, at, contradiction))

    @property
    def full(self) -> bool:
        """Whether there are enough findings: suggestions cost time, and hostile files have many mistakes."""
        return len(self.findings) >= MOST

    def sound(self, path: Path) -> bool:
        """Whether there is no mistake at `path` or below it."""
        return all(finding.path[: len(path)] != path for finding in self.findings)

    def unknown_key(self, path: Path) -> bool:
        """Whether a key at `path` is unknown: it may be a misspelling of a missing one."""
        return any(finding.path == path and finding.key for finding in self.findings)

    def plugin(self, kind: type[P], part: Part, path: Path) -> P | None:
        """The plugin of that kind named by the section at `path`."""
        if isinstance(part.use, Plugin):
            if isinstance(part.use, kind):
                return part.use
            self.add(path, f"'{part.use.name}' is a plugin of kind {part.use.kind}, not {kind.kind}")
            return None
        plugin = self.plugins.get((kind.kind, part.use))
        if plugin is None:
            try:
                plugin = find(kind.kind, part.use)
            except PluginError as error:
                plugin = " ".join(str(error).split())
            self.plugins[kind.kind, part.use] = plugin
        if isinstance(plugin, kind):
            return plugin
        assert isinstance(plugin, str)
        self.add(path, plugin, at=None if part.bare else "use")
        return None

    @cached_property
    def objective_names(self) -> list[str]:
        """All known objective plugins."""
        return names("objective")

    def use(self, kind: type[P], part: Part | None, path: Path) -> Use[P] | None:
        """The plugin of the section at `path` with checked settings, including its own `check()`."""
        plugin = None if part is None else self.plugin(kind, part, path)
        return None if plugin is None or part is None else self.settings(plugin, part, path)

    def settings(self, plugin: P, part: Part, path: Path) -> Use[P] | None:
        """`plugin` with the settings of the section at `path`."""
        use, findings = validate(plugin, part.settings, self.read)
        self.findings.extend(_with_place(finding, plugin).below(path) for finding in findings)
        if use is None or not isinstance(plugin, ModelPlugin) or not (plugin.has("check") or plugin.has("declares")):
            return use
        try:
            built = use.build()
            if plugin.has("check") and (mistakes := list(built.check() or ())):
                for mistake in mistakes:
                    self.setting(mistake, plugin, path)
                return None
            use = cast(Use[P], with_declared(cast(Use[ModelPlugin], use), built))
        except PluginError as error:
            self.add(path, str(error), at="use")
        except StudyError as error:
            self.in_file(error, use, path)
        except InvalidSetting as error:
            self.setting(error, plugin, path)
        except Exception as error:
            self.add_failure(plugin, error, path)
        else:
            return use
        return None

    def setting(self, error: InvalidSetting, plugin: Plugin, path: Path) -> None:
        """Record a mistake in a setting: 'plant.delay' leads into the setting 'plant', 'files.0' to its first entry."""
        steps = [int(step) if step.isdigit() else step for step in error.name.split(".")]
        is_setting = steps[0] in plugin.settings
        self.add((*path, *steps) if is_setting else path, error.message if is_setting else str(error), key=error.key)

    def in_file(self, error: StudyError, use: Use[Plugin], path: Path) -> None:
        """Record the mistakes of a model file (`designopt.study.model_file`) at the setting that names it."""
        file_settings = {value.name: name for name, value in use.settings.items() if isinstance(value, InputFile)}
        for issue in error.issues:
            setting_path = (*path, file_settings[issue.file]) if issue.file in file_settings else path
            position = ":".join(str(part) for part in (issue.file, issue.line, issue.column) if part is not None)
            self.add(setting_path, f"{position}: {issue.path + ': ' if issue.path else ''}{issue.message}")

    def check_value(self, value: Any, field: Field | None, path: Path) -> Any:
        """The value at `path` in the model's form, any value without a declaration; None if it is invalid."""
        if field is None:
            return value
        try:
            setting, findings = check(field_type(field), value, self.read)
        except PluginError as error:
            self.add(path, str(error))
            return None
        self.findings.extend(finding.below(path) for finding in findings)
        return None if findings else setting

    def add_failure(self, plugin: Plugin, error: Exception, path: Path) -> None:
        """Record that code of `plugin`, whose section is at `path`, failed: in one line with its position."""
        self.add(path, f"{plugin.name}: {error_line(error)}", at="use")

    def formula(self, text: str | None, path: Path) -> Expression | None:
        """The expression in the text at `path`, with finite constant parts."""
        if text is None:
            return None
        try:
            expression = Expression.parse(text)
            expression.check_constants()
        except ExpressionError as error:
            self.add(path, error.message, part=(error.offset, error.length))
            return None
        return expression

    def in_unit(self, amount: Amount | None, unit: str, path: Path) -> float | None:
        """The number at `path` in `unit`, which is also the default; None for an incompatible unit."""
        if amount is None:
            return None
        if amount.unit is None or amount.unit == unit:
            return amount.value
        try:
            value = units.convert(amount.value, amount.unit, unit)
        except UnitError as error:
            self.add(path, f"incompatible units: {error}")
            return None
        if not math.isfinite(value):
            self.add(path, f"the number is too large in {units.unit_text(unit)}")
            return None
        return value

    def bound(
        self, expression: Expression, unit_of: Mapping[str, str | None], path: Path
    ) -> tuple[Expression, str | None] | None:
        """The expression with units resolved (`unit_of` gives that of each name); None if they are incompatible."""
        try:
            bound = expression.bound(unit_of)
            bound[0].check_constants()
            return bound
        except ExpressionError as error:
            self.add(path, error.message, part=(error.offset, error.length))
            return None


def unit_of(field: Field) -> str | None:
    """The declared unit; None without a declaration."""
    return field.quantity.unit if field.quantity else None


def _alike(word: str, other_word: str) -> bool:
    """Whether each part of the words is a spelling of the other's: ``body_mass`` is no ``ad_mass``."""
    parts, other_parts = word.split("_"), other_word.split("_")
    return all(closest(part, other_parts) for part in parts) and all(closest(part, parts) for part in other_parts)


def _with_place(finding: Finding, plugin: Plugin) -> Finding:
    """A finding on an unknown setting; one that is an input or a condition of the model says where it belongs."""
    if not isinstance(plugin, ModelPlugin) or finding.path or not finding.key:
        return finding
    inputs, conditions = plugin.inputs or {}, plugin.conditions or {}
    near = finding.key if finding.key in {*inputs, *conditions} else None
    if near is None and closest(finding.key, plugin.settings) is None:
        near = closest(finding.key, [*inputs, *conditions])
    if near is None or not _alike(finding.key, near):
        return finding
    design = f"solver: {{use: evaluate, designs: [{{{near}: ...}}]}}, or space"
    role = f"an input of designs, not a setting: {design}" if near in inputs else "a condition of scenarios"
    return replace(finding, message=f"unknown key '{finding.key}': '{near}' is {role}")
