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
    def of(cls, sections: Sequence[Any] | None, made: Sequence[Objective], *, given: bool = True) -> Goals:
        """From the valid `sections` (None for an invalid one) and their objectives `made`.

        `given` is False in a study without such a section.
        """
        if not given:
            return cls({}, True, 0)
        named = [section and section["name"] for section in sections or []]
        known = [name for name in named if name is not None]
        units = {**dict.fromkeys(known), **{o.name: o.unit for o in made}}
        return cls(units, bool(named) and None not in named, len(named))

    def known(self, ctx: Context, name: str, path: Path) -> bool:
        """Whether `name`, a key at `path`, is an objective; a finding if not."""
        if name in self.units:
            return True
        if self.complete:
            ctx.add(path, f"there is no objective named '{name}'{nearest_or_all(name, self.units)}", key="")
        return False

    def amounts(self, ctx: Context, given: Mapping[str, Amount | None], path: Path, *, every: bool) -> dict[str, float]:
        """The values `given` by objective in its unit; with `every`, none may be missing."""
        found: dict[str, float] = {}
        for name, amount in given.items():
            here: Path = (*path, name)
            if self.known(ctx, name, here) and (unit := self.units[name]) is not None:
                value = ctx.in_unit(amount, unit, here)
                if value is not None:
                    found[name] = value
        missing = [name for name in self.units if name not in given]
        if every and self.complete and missing and all(name in self.units for name in given):
            ctx.add(path, f"a value is missing for {', '.join(missing[:20])}")
        return found
