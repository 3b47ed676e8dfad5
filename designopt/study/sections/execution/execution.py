"""Second pass over `execution`: workers, time-outs, retries and failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from designopt.plugin import ModelPlugin
from designopt.study.language.findings import Path, nearest_or_all
from designopt.study.sections.context import Context
from designopt.study.sections.execution.cluster import cluster
from designopt.study.study import Execution, Retry

_SHARES = ("stop_if_share_above", "after")


def execution(
    ctx: Context,
    section: Mapping[str, Any] | None,
    model: ModelPlugin | None,
    *,
    programs: Sequence[str] | None = None,
    analysis: bool = False,
) -> Execution:
    """The execution settings; `programs` are those that the model runs, None for an invalid model; an `analysis` has no
    objectives, hence no front for arrays."""
    settings = {key: value for key, value in (section or {}).items() if value is not None}
    path: Path = ("execution",)
    if "timeout" in settings and settings.get("executor") == "serial":
        message = "executor 'serial' cannot end a design that hangs; remove 'timeout' or use executor: dask"
        ctx.add((*path, "timeout"), message)
    if settings.get("executor") == "serial" and settings.get("scheduler", "local") != "local":
        ctx.add((*path, "scheduler"), "a scheduler belongs to executor: dask")
    if settings.get("workers", "auto") != "auto":
        if settings.get("executor") == "serial":
            ctx.add((*path, "workers"), "executor 'serial' has no workers; remove 'workers' or use executor: dask")
        elif settings.get("scheduler", "local") != "local":
            ctx.add((*path, "workers"), "all workers of the scheduler are used; remove 'workers'")
    arrays = settings.get("arrays", {})
    for position, name in enumerate(arrays):
        if model and name is not None and name not in model.arrays:
            suggestion = f"{nearest_or_all(name, model.arrays)}" if model.arrays else ": it declares none"
            array_path: Path = (*path, "arrays", position) if isinstance(arrays, list) else (*path, "arrays", name)
            ctx.add(array_path, f"model '{model.name}' has no array '{name}'{suggestion}", key="")
        if analysis and isinstance(arrays, dict) and arrays[name] not in ("all", "failed"):
            ctx.add((*path, "arrays", name), "without objectives there is no front; write all or failed")
    for name in settings.get("at_most", {}):
        if programs is not None and name not in programs:
            suggestion = f": it runs {', '.join(programs)}" if programs else ": it runs none"
            ctx.add((*path, "at_most", name), f"the model runs no program '{name}'{suggestion}", key="")
    failure = settings.get("on_failure", {})
    plain = Execution()
    workers = settings.get("workers", "auto")
    return Execution(
        executor=settings.get("executor", plain.executor),
        workers=None if workers == "auto" else workers,
        scheduler=settings.get("scheduler", plain.scheduler),
        cluster=cluster(ctx, settings),
        timeout=settings.get("timeout"),
        grace=settings.get("grace", plain.grace),
        retries={**plain.retries, **settings.get("retries", {})},
        on_failure={**plain.on_failure, **{key: action for key, action in failure.items() if key not in _SHARES}},
        arrays=dict.fromkeys(arrays, "all" if analysis else "front") if isinstance(arrays, list) else dict(arrays),
        stop_if_share_above=failure.get("stop_if_share_above"),
        after=failure.get("after", plain.after),
        at_most={name: number for name, number in settings.get("at_most", {}).items() if number is not None},
        retry=Retry(**settings["retry"]) if "retry" in settings and None not in settings["retry"].values() else None,
    )
