"""Scenarios drawn by a sampler: ``{use: sobol, count: 64, vary: {friction: [0.3, 0.9]}, with: {speed: 5 m/s}}``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Required, TypedDict

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, WrapValidator

from designopt.plugin import Field, InvalidSetting, ModelPlugin, Plugin, PluginError, Quantity, SolverPlugin, Use
from designopt.study.language.checking import settings
from designopt.study.language.checking.part import Part, as_part
from designopt.study.language.checking.refusals import value_text, wrong_kind
from designopt.study.language.checking.values import Checked, check, members_of, table
from designopt.study.language.checking.words import JsonKeywords, Label, short_forms, spell_out_range
from designopt.study.language.findings import Finding, Path, nearest_or_all
from designopt.study.sections.context import Context
from designopt.study.sections.scenarios.spread import ConditionSpread, SpreadSection, spread, spreads_of
from designopt.study.sections.scenarios.undeclared import refuse_units
from designopt.study.study import Scenario

#: Maximum number of varied conditions of a sample.
MOST_VARIED = 100

Numbers = NDArray[np.float64]


def _spread(value: Any, handler: Any) -> Any:
    value = spell_out_range(value)
    if not isinstance(value, Mapping):
        raise wrong_kind("a mapping with 'low' and 'high', 'values', or 'mean' and 'deviation'", value)
    return handler(value)


#: The distribution of a condition, or the short form ``[low, high]``.
SpreadEntry = Annotated[SpreadSection, WrapValidator(_spread), short_forms()]
SampleSection = TypedDict(
    "SampleSection",
    {
        "use": Required[Annotated[Any, Quantity("", "the sampler"), JsonKeywords(type="string")]],
        "count": Required[Annotated[int, Quantity("", "number of scenarios", ge=1)]],
        "seed": Annotated[int, Quantity("", "seed of this sample; default: that of the study", ge=0)],
        "vary": Annotated[dict[str, SpreadEntry], Quantity("", "conditions that vary")],
        "with": Annotated[dict[str, Any], Quantity("", "conditions common to all scenarios")],
        "name": Annotated[Label, Quantity("", "prefix of the names of the scenarios")],
    },
    total=False,
)

#: The same in the JSON Schema, with the settings of its sampler.
SampleEntry = Annotated[SampleSection, JsonKeywords(additionalProperties=True)]


def sampled_scenarios(
    ctx: Context, section: Mapping[str, Any], model: ModelPlugin | None, seed: int, path: Path, limit: int
) -> list[Scenario]:
    """The scenarios of the sample at `path`, at most `limit`; none if it is invalid."""
    before = len(ctx.findings)
    settings, use = _sampler_and_settings(ctx, section, path, limit)
    if settings is None:
        return []
    spreads = _spreads(ctx, settings, model, path)
    common = _common_conditions(ctx, settings, spreads, model, path)
    if use is None or model is None or len(ctx.findings) > before:
        return []
    name = settings.get("name", "sampled")
    rng = generator(settings.get("seed", seed), path[0], name)
    unit = _unit_sample(ctx, use, settings["count"], len(spreads), rng, path)
    if unit is None:
        return []
    columns = {n: s.values(unit[:, j]) for j, (n, s) in enumerate(spreads.items()) if s is not None}
    return [
        Scenario(f"{name}_{i + 1:04d}", {**common, **{n: column[i] for n, column in columns.items()}})
        for i in range(settings["count"])
    ]


def generator(seed: int, section: str | int, name: str) -> np.random.Generator:
    """The random numbers of the sample `name` in a `section`, independent of the rest of the study.

    ``SeedSequence(seed, spawn_key=(a, b))`` with a and b the first four bytes, as big-endian integers, of the BLAKE2b
    digests of the two names. Solvers have keys of one number, so that their streams are distinct from those of samples.
    """
    key = tuple(int.from_bytes(hashlib.blake2b(str(n).encode(), digest_size=4).digest()) for n in (section, name))
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def _sampler_and_settings(
    ctx: Context, section: Mapping[str, Any], path: Path, limit: int
) -> tuple[dict[str, Any] | None, Use[SolverPlugin] | None]:
    """The valid keys of the sample itself, and its sampler with the settings among them."""
    word = section["use"]
    declared_part = as_part(word)
    if declared_part is not None:
        word = declared_part.use
        section = {**{n: v for n, v in declared_part.settings.items() if n != "samples"}, **section}
    plugin = None
    if isinstance(word, (str, Plugin)):
        plugin = ctx.plugin(SolverPlugin, Part(word, {}), path)
    else:
        ctx.add(path, f"'use' must be the name of a sampler, not {value_text(word)}", at="use")
    if plugin is not None and (not plugin.has("unit_sample") or "samples" not in plugin.settings):
        message = f"solver '{plugin.name}' does not draw scenarios; use sobol, latin_hypercube, halton or random"
        ctx.add(path, message, at="use")
        plugin = None
    sample_keys = members_of(SampleSection)
    sampler_settings = (
        {n: f for n, f in plugin.settings.items() if n not in sample_keys and n != "samples"} if plugin else {}
    )

    def make() -> Checked:
        return TypeAdapter(table("sample", {**sample_keys, **sampler_settings}))

    try:
        against = settings.cached_check(plugin or SampleSection, make)
    except PluginError as error:
        ctx.add(path, str(error), at="use")
        return None, None
    data = section if plugin else {key: value for key, value in section.items() if key in sample_keys}
    sample_settings, mistakes = check(against, data, ctx.read)
    ctx.findings.extend(finding.below(path) for finding in mistakes)
    if (sample_settings["count"] or 0) > limit:
        ctx.add((*path, "count"), f"at most 10000 scenarios are allowed; {limit} are left for this sample")
        plugin = None
    if mistakes or plugin is None:
        return sample_settings, None
    plugin_settings = {**{n: section[n] for n in sampler_settings if n in section}, "samples": sample_settings["count"]}
    use, wrong = settings.validate(plugin, plugin_settings, ctx.read)
    ctx.findings.extend(_for_count(finding).below(path) for finding in wrong)
    return sample_settings, use


def _for_count(finding: Finding) -> Finding:
    """A message of a sampler about `samples`, rewritten for `count`."""
    if finding.path[:1] != ("samples",):
        return finding
    return replace(finding, path=("count", *finding.path[1:]))


def _spreads(
    ctx: Context, settings: Mapping[str, Any], model: ModelPlugin | None, path: Path
) -> dict[str, ConditionSpread | None]:
    """The distribution of each varied condition; None for an invalid one."""
    if model is None:
        return {}
    conditions = model.conditions
    if "vary" not in settings:
        declared_spreads = {
            n: s for n, s in spreads_of(conditions or {}).items() if n not in (settings.get("with") or {})
        }
        if not declared_spreads and not ctx.unknown_key(path):
            ctx.add(path, f"'vary' is missing: model '{model.name}' does not declare the ranges of its conditions")
        return dict(declared_spreads)
    if settings["vary"] is None:
        return {}
    if not settings["vary"] or len(settings["vary"]) > MOST_VARIED:
        ctx.add((*path, "vary"), f"1 to {MOST_VARIED} conditions may vary, not {len(settings['vary'])}")
        return {}
    result: dict[str, ConditionSpread | None] = {}
    for name, section in settings["vary"].items():
        condition_path: Path = (*path, "vary", name)
        item: Field | None = None
        if conditions is not None:
            item = conditions.get(name)
            if item is None:
                suggestion = nearest_or_all(name, [n for n in conditions if n not in settings["vary"]])
                ctx.add(condition_path, f"model '{model.name}' has no scenario condition '{name}'{suggestion}", key="")
                continue
        elif name == "name":
            ctx.add(condition_path, "'name' is the name of a scenario and does not vary", key="")
            continue
        result[name] = spread(ctx, section, item, condition_path)
    return result


def _common_conditions(
    ctx: Context,
    sample_settings: Mapping[str, Any],
    spreads: Mapping[str, ConditionSpread | None],
    model: ModelPlugin | None,
    path: Path,
) -> dict[str, Any]:
    """The conditions common to all scenarios of the sample; those neither here nor in `spreads` are missing."""
    vary, values = sample_settings.get("vary", {}) or {}, dict(sample_settings.get("with", {}) or {})
    for name in [n for n in values if n in vary]:
        ctx.add((*path, "with", name), f"'{name}' is also in 'vary'; remove one of them", key="")
        del values[name]
    if model is None or model.conditions is None:
        refuse_units(ctx, values if model is not None else {}, (*path, "with"))
        return values
    constant_names = [n for n in model.conditions if n not in spreads and n not in vary]
    valid = None not in (sample_settings.get("vary", {}), sample_settings.get("with", {})) and not ctx.unknown_key(path)
    conditions, wrong = check(settings.fields_type("scenario", model.conditions, constant_names), values, ctx.read)
    for finding in wrong:
        if finding.path or finding.key is not None:
            ctx.findings.append(finding.below((*path, "with")))
        elif valid and all(name in model.conditions for name in vary):  # a condition is missing
            ctx.findings.append(finding.below(path))
    return conditions or {}


def _unit_sample(
    ctx: Context, use: Use[SolverPlugin], count: int, dimension: int, rng: np.random.Generator, path: Path
) -> Numbers | None:
    """`count` points in the unit cube."""
    try:
        unit = np.array(use.build().unit_sample(dimension, rng), dtype=float)
    except InvalidSetting as error:
        key = "count" if error.name == "samples" else error.name
        ctx.add((*path, key) if key in use.plugin.settings or key == "count" else path, error.message)
        return None
    except Exception as error:
        ctx.add_failure(use.plugin, error, path)
        return None
    if unit.shape != (count, dimension) or not ((unit >= 0.0) & (unit <= 1.0)).all():
        ctx.add(path, f"{use.plugin.name}: unit_sample did not return {count} points of the unit cube", at="use")
        return None
    return unit
