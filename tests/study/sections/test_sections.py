"""Budgets by hypervolume, clusters, failure policy, choices, validation, reference and export in a study file."""

import importlib.util
import itertools
import random
import re

import pytest

from designopt.study.sections.execution.cluster import BYTES
from designopt.study.study import Choice, Cluster, HypervolumeGain

REFERENCE = "reference: {mismatch: 2, peak: 1 rad, gap: 1 mm}"
CLUSTER_END = "interface: ib0"
B = "stages.1.budget.hypervolume"
C = "execution.cluster"
V = "report.validate"


def test_everything_in_the_file_is_in_the_study(load, full_text) -> None:
    study = load(full_text)
    assert study.stages[1].budget.hypervolume == HypervolumeGain(
        (2.0, pytest.approx(57.29577951308232), 0.001), 1e-4, 20
    )
    assert study.execution.cluster == Cluster(
        "slurm", 20, 16, 32_000_000_000, 14_400.0, 2, "short", "mech-01", "ib0",
    )  # fmt: skip
    assert study.execution.retries == {"crashed": 1, "lost_worker": 3, "timeout": 0, "error": 1}
    assert study.execution.on_failure == {"diverged": "stop", "error": "infeasible", "timeout": "infeasible"}
    assert (study.execution.stop_if_share_above, study.execution.after) == (0.5, 100)
    assert study.choose == (
        Choice("knee"),
        Choice("topsis", norm="vector"),
        Choice("topsis", {"mismatch": 2.0, "gap": 0.0}, "minmax"),
        Choice("utopia", norm="chebyshev"),
        Choice("nearest_to", target={"peak": pytest.approx(5.729577951308232), "gap": 0.02}),
    )
    assert [s.name for s in study.validate.scenarios] == ["sampled_0001", "sampled_0002", "sampled_0003"]
    assert study.validate.quantiles == (0.1, 0.9)
    assert study.reference == {"mismatch": 2.0, "peak": 60.0, "gap": 0.0}
    assert [use.plugin.name for use in study.export] == ["csv", "parquet", "netcdf"]


def test_sections_omitted_by_a_small_study(load, base_text) -> None:
    study = load(base_text)
    assert study.execution.cluster is None
    assert study.execution.on_failure == {"error": "stop_repeated"}
    assert (study.choose, study.validate, dict(study.reference), study.export) == ((), None, {}, ())


@pytest.mark.parametrize(
    ("reference", "expected"), [("[2, 1 rad, 1 mm]", (2.0, 57.29577951308232, 0.001)), ("[2, 60, 1]", (2.0, 60.0, 1.0))]
)
def test_a_reference_may_be_a_list_in_the_order_of_the_objectives(load, full_text, reference, expected) -> None:
    study = load(full_text.replace(REFERENCE, f"reference: {reference}"))
    assert study.stages[1].budget.hypervolume.reference == pytest.approx(expected)


@pytest.mark.parametrize(
    ("amount", "expected"),
    [("32 GB", 32e9), ("32GiB", 32 * 2**30), ("512 MB", 512e6), ("0.5 TB", 5e11), ("1048576 KiB", 2**30)],
)
def test_memory_is_an_amount_with_a_unit(load, full_text, amount, expected) -> None:
    assert load(full_text.replace("32 GB", amount)).execution.cluster.memory == expected


def test_the_units_of_memory_are_those_of_pint() -> None:
    import pint

    registry = pint.UnitRegistry()
    assert {name: registry.Quantity(1, name).to("byte").magnitude for name in BYTES} == pytest.approx(BYTES)


def test_scenarios_of_the_validation_may_be_listed(load, full_text) -> None:
    sample = "{use: test_sampler, count: 3, jitter: true, with: {speed: 5}}"
    scenarios = f"[{{name: slow, speed: 1}}, {sample}]"
    study = load(full_text.replace(sample, scenarios).replace("    quantiles: [0.1, 0.9]\n", ""))
    assert [s.name for s in study.validate.scenarios][:2] == ["slow", "sampled_0001"]
    assert study.validate.quantiles == (0.05, 0.5, 0.95)


# what is replaced, by what, path, piece of the message
MISTAKES = [
    # --- budget.hypervolume
    (REFERENCE, "reference: «[2, 60]»", f"{B}.reference", "needs 3 values, one for each objective, has 2"),
    (REFERENCE, "reference: [2, «60 m», 1]", f"{B}.reference.1", "'m' cannot be converted to 'deg'"),
    (REFERENCE, "reference: «{mismatch: 2, peak: 60}»", f"{B}.reference", "a value is missing for gap"),
    (REFERENCE, "reference: {mismatch: 2, peak: 60, gap: 1, «gpa»: 1}", f"{B}.reference.gpa", "did you mean 'gap'?"),
    (REFERENCE, "reference: {mismatch: 2, peak: «60 kg», gap: 1}", f"{B}.reference.peak", "incompatible units"),
    (REFERENCE, "reference: {mismatch: «far», peak: 60, gap: 1}", f"{B}.reference.mismatch", "not the word 'far'"),
    (REFERENCE, "reference: «7»", f"{B}.reference", "expected a list or a mapping"),
    (REFERENCE + ", gain_below: 1e-4", REFERENCE + ", gain_below: «0»", f"{B}.gain_below", "must be above 0"),
    (", gain_below: 1e-4", "", B, "'gain_below' is missing (relative growth below which the search ends)"),
    ("over_generations: 20", "over_generations: «0»", f"{B}.over_generations", "must be at least 1"),
    ("over_generations: 20", "over_generations: 20, «generations»: 3", B, "unknown key 'generations'"),
    ("      evaluations: 500\n", "", "stages.1.budget", "give 'evaluations' or 'wall' too"),
    # --- execution.cluster
    ("use: slurm", "use: «slrum»", f"{C}.use", "'slrum' is not one of slurm, pbs; did you mean 'slurm'?"),
    ("    jobs: 20\n", "", C, "'jobs' is missing (maximum number of jobs)"),
    ("jobs: 20", "jobs: «0»", f"{C}.jobs", "must be at least 1"),
    ("cores: 16", "cores: «half»", f"{C}.cores", "not the word 'half'"),
    ("memory: 32 GB", "memory: «32»", f"{C}.memory", "a unit is missing, as in 32 GB"),
    ("memory: 32 GB", "memory: «32 rad»", f"{C}.memory", "'32 rad' is not an amount of memory"),
    ("memory: 32 GB", "memory: «-1 GB»", f"{C}.memory", "'-1 GB' is not an amount of memory"),
    ("memory: 32 GB", "memory: «32 MB»", f"{C}.memory", "must be at least 100 MB"),
    ("memory: 32 GB", "memory: «999999999999999 TB»", f"{C}.memory", "the number is too large"),
    ("memory: 32 GB", "memory: «[32 GB]»", f"{C}.memory", "expected an amount of memory such as 32 GB, not a list"),
    ("walltime: 4 h", "walltime: «4 kg»", f"{C}.walltime", "incompatible units"),
    ("walltime: 4 h", "walltime: «4»", f"{C}.walltime", "must be at least 60 s, not 4"),
    ("minimum: 2", "minimum: «21»", f"{C}.minimum", "must be at most jobs (20), not 21"),
    ("queue: short", "queue: «'short; rm'»", f"{C}.queue", "'short; rm' is not one word"),
    ("account: mech-01", "account: «7»", f"{C}.account", "put quotes around it"),
    (CLUSTER_END, CLUSTER_END + "\n    «prologue»: [echo]", C, "unknown key 'prologue'"),
    (CLUSTER_END, CLUSTER_END + "\n    «scheduler»: x", C, "unknown key 'scheduler'"),
    ("executor: dask\n  cluster", "scheduler: tls://a:1\n  «cluster»", C, "a cluster brings its own scheduler"),
    ("executor: dask\n  cluster", "«workers»: 2\n  cluster", "execution.workers", "a cluster has jobs * cores workers"),
    # --- failures and order
    ("error: 1}", "error: «101»}", "execution.retries.error", "must be at most 100"),
    ("error: 1}", "«eror»: 1}", "execution.retries", "did you mean 'error'?"),
    ("diverged: stop", "diverged: «halt»", "execution.on_failure.diverged", "'halt' is not one of infeasible, stop"),
    ("diverged: stop", "diverged: «stop_repeated»", "execution.on_failure.diverged", "is not one of"),
    ("diverged: stop", "«divergd»: stop", "execution.on_failure", "did you mean 'diverged'?"),
    ("after: 100", "after: «0»", "execution.on_failure.after", "must be at least 1"),
    # --- report.choose
    ("- knee", "- «kne»", "report.choose.0", "epsilon_constraint, robust; did you mean 'knee'?"),
    ("- knee", "- «7»", "report.choose.0", "expected a rule such as knee"),
    ("- knee", "- «nearest_to»", "report.choose.0", "give the values to approach"),
    ("- knee\n    - topsis\n", "- topsis\n    - «topsis»\n", "report.choose.1", "this rule is given twice"),
    ("- knee", "- {«kne»: {}}", "report.choose.0", "did you mean 'knee'?"),
    ("- knee", "- {knee: {«norm»: l1}}", "report.choose.0.knee", "unknown key 'norm'"),
    ("- knee", "- «{knee: {}, topsis: {}}»", "report.choose.0", "one rule is expected here, not 2"),
    ("- knee", "- {topsis: «7»}", "report.choose.0.topsis", "expected a mapping"),
    ("norm: minmax", "norm: «l1»", "report.choose.2.topsis.norm", "'l1' is not one of vector, minmax"),
    ("mismatch: 2, gap: 0}}", "«mismtch»: 2}}", "report.choose.2.topsis.weights.mismtch", "did you mean 'mismatch'?"),
    ("mismatch: 2, gap: 0}}", "gap: «-1»}}", "report.choose.2.topsis.weights.gap", "must be at least 0"),
    ("weights: {mismatch: 2, gap: 0}", "weights: «{mismatch: 0, gap: 0, peak: 0}»", "report.choose.2.topsis.weights",
     "at least one weight must be above 0"),
    ("norm: chebyshev", "norm: «vector»", "report.choose.3.utopia.norm", "'vector' is not one of l1, l2, chebyshev"),
    ("peak: 0.1 rad, gap: 2 cm", "peak: «0.1 m»", "report.choose.4.nearest_to.peak", "incompatible units"),
    ("peak: 0.1 rad, gap: 2 cm", "«paek»: 1", "report.choose.4.nearest_to.paek", "did you mean 'peak'?"),
    ("{peak: 0.1 rad, gap: 2 cm}", "«{}»", "report.choose.4.nearest_to", "at least one objective is needed"),
    # --- report.validate, reference, export
    ("    scenarios: {use: test_sampler, count: 3, jitter: true, with: {speed: 5}}\n", "", V, "'scenarios' is missing"),
    ("count: 3", "count: «0»", f"{V}.scenarios.count", "must be at least 1"),
    ("with: {speed: 5}", "with: {speed: «5 kg»}", f"{V}.scenarios.with.speed", "incompatible units"),
    ("{use: test_sampler, count: 3, jitter: true, with: {speed: 5}}", "«[]»", f"{V}.scenarios", "at least one"),
    ("{use: test_sampler, count: 3, jitter: true, with: {speed: 5}}", "[{name: a, speed: «-1»}]",
     f"{V}.scenarios.0.speed", "must be at least 0 m/s"),
    ("quantiles: [0.1, 0.9]", "quantiles: [0.1, «1.9»]", f"{V}.quantiles.1", "must be at most 1"),
    ("quantiles: [0.1, 0.9]", "quantiles: [0.1, «0.1»]", f"{V}.quantiles.1", "quantile 0.1 is given twice"),
    ("quantiles: [0.1, 0.9]", "quantiles: «[]»", f"{V}.quantiles", "at least one quantile is needed"),
    ("peak: 60, gap: 0}", "peak: 60, «gapp»: 0, gap: 0}", "report.reference.gapp", "did you mean 'gap'?"),
    ("{mismatch: 2, peak: 60, gap: 0}", "«{mismatch: 2, gap: 0}»", "report.reference", "a value is missing for peak"),
    ("{mismatch: 2, peak: 60, gap: 0}", "«[2, 60, 0]»", "report.reference", "expected a mapping, not a list"),
    ("export: [csv", "export: [«cvs»", "report.export.0", "did you mean 'csv'?"),
    ("export: [csv, parquet, netcdf]", "export: [csv, «csv»]", "report.export.1", "'csv' is given twice"),
    ("export: [csv, parquet, netcdf]", "export: «csv»", "report.export", "expected a list, not the word 'csv'"),
    ("  export: [csv", "  «exprt»: [csv", "report", "did you mean 'export'?"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("find", "replacement", "path", "fragment"), MISTAKES, ids=[f"{i}-{m[2]}" for i, m in enumerate(MISTAKES)]
)
def test_a_mistake_is_reported_once_at_its_place(refused_once, full_text, find, replacement, path, fragment) -> None:
    refused_once(full_text, find, replacement, path, fragment)


def pairs(base: str, issues) -> list[tuple[str, set[str]]]:
    """Files with any two of the mistakes, and the sentences that each of the two causes by itself."""
    single = []
    for find, replacement, _, _ in MISTAKES:
        new = re.sub("[«»]", "", replacement)
        start = base.index(find)
        single.append((start, start + len(find), new, issues(base.replace(find, new))))
    single.sort(key=lambda case: case[:2])
    return [
        (base[: a[0]] + a[2] + base[a[1] : b[0]] + b[2] + base[b[1] :], a[3] | b[3])
        for a, b in itertools.combinations(single, 2)
        if a[1] <= b[0]
    ]


#: What needs the number of jobs to be told, or tells of the keys that are missing as well.
DEPENDENT = ("must be at most jobs", "unknown key 'prologue'", "unknown key 'scheduler'")


@pytest.mark.parametrize("most", [120, pytest.param(None, marks=pytest.mark.slow)])
def test_of_two_mistakes_both_are_reported_and_nothing_else(mistakes, full_text, most) -> None:
    def issues(text: str) -> set[str]:
        return {f"{issue.path}: {issue.message}" for issue in mistakes(text)}

    files = pairs(full_text, issues)
    assert len(files) > 2000
    for text, expected in files if most is None else random.Random(3).sample(files, most):
        if not any(piece in sentence for piece in DEPENDENT for sentence in expected):
            assert issues(text) == expected, text


def test_a_cluster_needs_workers(refused_once, full_text) -> None:
    text = full_text.replace("  timeout: 20 s\n", "")
    replacement = "executor: serial\n  «cluster»"
    refused_once(
        text, "executor: dask\n  cluster", replacement, C, "executor 'serial' has no workers; remove 'cluster'"
    )


SINGLE = """\
study: single
model: {use: test_wheel, mass: 3}
space: {stiffness: [1, 2]}
objectives: [{name: a, minimize: rho}]
stages:
  - name: one
    solver: {use: test_search}
    budget: {evaluations: 40}
report: {plots: []}
"""


@pytest.mark.parametrize(
    ("find", "replacement", "path", "message"),
    [
        (
            "evaluations: 40",
            "evaluations: 40, «hypervolume»: {reference: [1], gain_below: 0.1, over_generations: 2}",
            "stages.0.budget.hypervolume",
            "a hypervolume needs two or more objectives; leave it out",
        ),
        ("plots: []", "«reference»: {a: 1}", "report.reference", "a hypervolume needs two or more objectives"),
        ("plots: []", "choose: [«knee»]", "report.choose.0", "'knee' chooses from a front, which needs two or more"),
    ],
)
def test_a_single_objective_has_neither_front_nor_hypervolume(refused_once, find, replacement, path, message) -> None:
    refused_once(SINGLE, find, replacement, path, message)


def test_the_design_of_a_single_objective_may_be_chosen_by_its_robustness(load) -> None:
    assert [choice.method for choice in load(SINGLE.replace("plots: []", "choose: [robust]")).choose] == ["robust"]


def test_a_mistake_in_an_objective_is_not_told_where_it_is_used(mistakes, full_text) -> None:
    issues = mistakes(full_text.replace("minimize: abs(peak_error)", "minimize: abs(peak_eror)"))
    assert [issue.path for issue in issues] == ["objectives.1.minimize"]
    issues = mistakes(full_text.replace("name: peak, minimize", "nam: peak, minimize"))
    assert {issue.path for issue in issues} == {"objectives.1"}


@pytest.mark.parametrize(
    ("package", "path", "sentence"),
    [
        ("dask_jobqueue", "execution.cluster", "clusters need dask-jobqueue: pip install 'designopt[cluster]'"),
        ("pyarrow", "report.export.1", "export to parquet needs pyarrow: pip install 'designopt[export]'"),
        ("h5netcdf", "report.export.2", "export to netcdf needs h5netcdf: pip install 'designopt[export]'"),
    ],
)
def test_a_package_that_is_not_installed_is_asked_for(
    mistakes, full_text, monkeypatch, package, path, sentence
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else real(name))
    assert [(i.path, i.message) for i in mistakes(full_text)] == [(path, sentence)]
