"""Selectors that several figures of a page have in common, which stand once on the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from designopt.report.section import Section, Selector


def page_selectors(parts: Iterable[Section]) -> tuple[Selector, ...]:
    """The selectors of several figures, or with a dotted option: of each label the most frequent one, the first of
    equally frequent ones."""
    counts = Counter(choice for part in parts for figure in part.figures for choice in dict.fromkeys(figure.choices))
    common: dict[str, Selector] = {}
    for selector, figures in counts.most_common():
        if figures > 1 or selector.dotted is not None:
            common.setdefault(selector.label, selector)
    return tuple(common.values())
