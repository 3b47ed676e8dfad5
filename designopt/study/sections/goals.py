"""References of other sections to the objectives: names, and values in their units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from designopt.study.language.findings import Path, nearest_or_all
from designopt.study.language.units import Amount
from designopt.study.sections.context import Context
from designopt.study.study import Objective


@dataclass(frozen=True)
class Goals:
    """The objectives by name with their units; None for an invalid one. `complete` if every name is known.

    A study without objectives is complete.
    """

    units: Mapping[str, str | None]
    complete: bool
    count: int

    @property
    def single(self) -> bool:
        """Whether there is no front: fewer than two objectives."""
        return self.count == 1 or self.none

    @property
    def none(self) -> bool:
        """Whether the study intentionally has no objectives."""
        return self.complete and not self.units

    @classmethod
    def from_sections(
        cls, sections: Sequence[Any] | None, objectives: Sequence[Objective], *, has_section: bool = True
    ) -> Goals:
        """The goals in the valid `sections` (None for an invalid one) with their `objectives`.

        `has_section` is False in a study without such a section.
        """
        if not has_section:
            return cls({}, True, 0)
        section_names = [section and section["name"] for section in sections or []]
        names = [name for name in section_names if name is not None]
        units = {**dict.fromkeys(names), **{o.name: o.unit for o in objectives}}
        return cls(units, bool(section_names) and None not in section_names, len(section_names))

    def check_name(self, ctx: Context, name: str, path: Path) -> bool:
        """Whether `name`, a key at `path`, is an objective; a finding if not."""
        if name in self.units:
            return True
        if self.complete:
            ctx.add(path, f"there is no objective named '{name}'{nearest_or_all(name, self.units)}", key="")
        return False

    def amounts(
        self, ctx: Context, amounts: Mapping[str, Amount | None], path: Path, *, every: bool
    ) -> dict[str, float]:
        """The values `amounts` by objective in its unit; with `every`, none may be missing."""
        values: dict[str, float] = {}
        for name, amount in amounts.items():
            entry_path: Path = (*path, name)
            if self.check_name(ctx, name, entry_path) and (unit := self.units[name]) is not None:
                value = ctx.in_unit(amount, unit, entry_path)
                if value is not None:
                    values[name] = value
        missing = [name for name in self.units if name not in amounts]
        if every and self.complete and missing and all(name in self.units for name in amounts):
            ctx.add(path, f"a value is missing for {', '.join(missing[:20])}")
        return values
