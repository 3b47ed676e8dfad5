"""Figures of the subject of several stores: the same part of each, drawn over each other."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from designopt.report.page.page import subject_sections
from designopt.report.plotly_figure import plot_of
from designopt.report.section import Figure, Section, Selector
from designopt.store.result import Result


def subjects(results: Sequence[Result], labels: Sequence[str]) -> list[Section]:
    """Sections of the parts of the subject that several stores have, their figures with a selector of the store.

    The selector is that of the whole page: it begins with the first store, the second one dotted over it. Selectors
    that all stores of a figure have with the same options remain, others are at their first option. Animations stay in
    the reports of the stores.
    """
    parts = [{section.title: section for section in subject_sections(result)} for result in results]
    titles = dict.fromkeys(title for part in parts for title in part)
    sections = []
    for title in titles:
        with_part = {label: part[title] for label, part in zip(labels, parts, strict=True) if title in part}
        figures_of = {
            label: {figure.title: figure for figure in section.figures if not _is_animation(figure)}
            for label, section in with_part.items()
        }
        names = dict.fromkeys(name for figures in figures_of.values() for name in figures)
        figures = [
            _of_stores({label: figures[name] for label, figures in figures_of.items() if name in figures})
            for name in names
        ]
        figures_of_stores = tuple(figure for figure in figures if figure is not None)
        if figures_of_stores:
            sections.append(Section(title, figures=figures_of_stores))
    return sections


def _is_animation(figure: Figure) -> bool:
    return "frames" in figure.plot or any("frames" in variant for variant in figure.variants.values())


def _of_stores(figures: dict[str, Figure]) -> Figure | None:
    """One figure of the same figure of several stores; None for one store."""
    if len(figures) < 2:
        return None
    first = next(iter(figures.values()))
    common = tuple(choice for choice in first.choices if all(choice in figure.choices for figure in figures.values()))
    variants = {}
    for k, figure in enumerate(figures.values()):
        for options in itertools.product(*(range(len(choice.options)) for choice in common)):
            option_of = dict(zip(common, options, strict=True))
            every = tuple(option_of.get(choice, 0) for choice in figure.choices)
            variants[k, *options] = plot_of(figure, every)
    start = variants[(0,) * (1 + len(common))]
    choices = (Selector("Store", tuple(figures), dotted=1), *common)
    return replace(first, plot=start, variants=variants, choices=choices, designs={}, brushed=None)
