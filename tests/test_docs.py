"""What the pages in docs/ show is accepted as written, and no page shows what is not tried."""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import command
import markdown
import pytest
import yaml
from jsonschema import Draft202012Validator
from page_study import REST

from designopt import define
from designopt.plugin import installed_plugins
from designopt.store.folder import read_study

DOCS = Path(__file__).parents[1] / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


PAGE = page("study_files.md")
SOLVERS = page("solvers.md")
PLUGINS = page("plugins.md")
RESULTS = page("results.md")


def blocks_in(language: str, text: str = PLUGINS) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def listed(text: str, first: str, last: str) -> list[str]:
    """The names at the beginning of table rows, between two lines of a page."""
    section = text[text.index(first) : text.index(last, text.index(first) + len(first))]
    heads = re.findall(r"^\| (`.*?`) \|", section, flags=re.MULTILINE)
    return [name for head in heads for name in re.findall(r"`(.*?)`", head)]


def listed_first(text: str, first: str, last: str) -> list[str]:
    """The single names of the first column of a table, where others may be named beside them."""
    return [name for name in listed(text, first, last) if ":" not in name]


# ------------------------------------------------------------------------------------------------------ study files


#: Packages that solvers need.
EXTRAS = {"morris": "SALib", "sobol_indices": "SALib"}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the store that an example starts from."""
    folder = tmp_path_factory.mktemp("study_files")
    model = {"use": "four_bar_knee", "cycles": 12}
    define(**{**REST, "model": model}).run(folder / "sweep.study", executor="serial")
    return folder


@pytest.mark.parametrize("block", [*blocks_in("yaml", PAGE), *blocks_in("yaml", SOLVERS)])
def test_every_example_of_a_section_is_a_valid_one(block: str, base: Path) -> None:
    sections: dict[str, Any] = yaml.safe_load(block)
    if "cluster" in sections.get("execution", {}):
        pytest.importorskip("dask_jobqueue")
    for solver in re.findall(r"use: (\w+)", block):
        if solver in EXTRAS:
            pytest.importorskip(EXTRAS[solver])
    rest = {name: value for name, value in REST.items() if name != "stages" or "solver" not in sections}
    definition = define(base=base, **{**rest, **sections}).definition
    assert definition.model.plugin.name == {**rest, **sections}["model"]["use"]


@pytest.mark.parametrize("block", [*blocks_in("yaml", PAGE), *blocks_in("yaml", SOLVERS)])
def test_editors_accept_every_example_and_mark_a_wrong_key_in_it(block: str, schema: dict[str, Any]) -> None:
    sections: dict[str, Any] = yaml.safe_load(block)
    rest = {name: value for name, value in REST.items() if name != "stages" or "solver" not in sections}
    editor = Draft202012Validator(schema)
    assert list(editor.iter_errors({**rest, **sections})) == []
    for name, section in sections.items():
        members = {"space": lambda s: next(iter(s.values())), "figures": lambda s: None}.get(name, lambda s: s)(section)
        if isinstance(members, dict) and "use" not in members:
            members["surprise"] = 1
            assert not editor.is_valid({**rest, **sections}), name
            del members["surprise"]


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    from designopt.study.sections.schema import schema

    return schema()


def test_editors_know_the_short_forms_of_parameters(schema: dict[str, Any]) -> None:
    parameter = {**schema["properties"]["space"]["additionalProperties"], "$defs": schema["$defs"]}
    editor = Draft202012Validator(parameter)
    for good in ([1, 2], ["12 kN/m", "30 kN/m"], 3.5, "5 mm", True, {"low": 1, "high": 2}):
        assert editor.is_valid(good), good
    for bad in ([1], [1, 2, 3], [1, None], None, {"lower": 1}):
        assert not editor.is_valid(bad), bad


def test_the_example_of_a_report_is_a_valid_one() -> None:
    text = re.search(r"^`(\{plots: .*?\})`:", PAGE, flags=re.MULTILINE)
    assert text is not None
    report = yaml.safe_load(text.group(1))
    names = [use.plugin.name for use in define(**REST, report=report).definition.plots]
    assert names == ["front", "map", "knee_angle"]


def test_every_section_of_a_study_file_has_its_heading() -> None:
    from designopt.study.sections.schema import SECTIONS

    headings = re.findall(r"^## (.*)$", PAGE, flags=re.MULTILINE)
    assert {name for heading in headings for name in re.findall(r"`(\w+)`", heading)} == set(SECTIONS)


def test_the_tables_of_sections_list_every_key() -> None:
    from designopt.study.sections.scenarios.sample import SampleSection
    from designopt.study.sections.schema import BudgetSection, ExecutionSection, ReportSection

    execution = listed(PAGE, "## `execution`", "An evaluation ends in one of these classes")
    assert {name for name in execution if name in ExecutionSection.__annotations__} == set(
        ExecutionSection.__annotations__
    )
    assert set(listed(PAGE, "### `budget`", "```yaml")) == set(BudgetSection.__annotations__)
    assert set(listed(PAGE, "## `report`", "```yaml")) == set(ReportSection.__annotations__)
    assert set(listed(PAGE, "A member with `use` is a sample", "| how a condition varies")) == set(
        SampleSection.__annotations__
    )


def test_the_table_of_failure_classes_lists_all_of_them_in_their_order() -> None:
    from designopt.problem import STATUSES

    assert tuple(listed(PAGE, "An evaluation ends in one of these classes", "## `report`")) == STATUSES


# ---------------------------------------------------------------------------------------------------------- solvers


def bundled(kind: Any) -> set[str]:
    return {entry.name for entry in installed_plugins(kind) if entry.distribution == "designopt"}


def test_the_table_of_solvers_lists_every_one() -> None:
    assert set(listed(SOLVERS, "## Which solver when", "## Fronts")) == bundled("solver")


def test_the_theory_of_solvers_names_a_source_for_every_one() -> None:
    heads = set(listed(page("theory/solvers.md"), "# Solvers", "**Derivatives.**"))
    nobodys = {"auto", "evaluate", "full_factorial", "random", "genetic"}  # no method of anybody's
    assert bundled("solver") - heads == nobodys


# ---------------------------------------------------------------------------------------------------------- plugins


@pytest.fixture
def kerb(tmp_path: Path) -> Path:
    """A folder with the plugins and the study of the page on plugins."""
    (tmp_path / "kerb.py").write_text("\n".join(blocks_in("python")))
    (tmp_path / "kerb.yaml").write_text(blocks_in("yaml")[0])
    return tmp_path


def python(folder: Path, *arguments: str) -> str:
    completed = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=120)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


def designopt(folder: Path, *arguments: str) -> str:
    completed = command.designopt(folder, *arguments)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


def commands(folder: Path, block: str) -> list[str]:
    """What each command of a block prints."""
    lines = [shlex.split(line) for line in block.splitlines()]
    assert {line[0] for line in lines} == {"designopt"}
    return [designopt(folder, *line[1:]) for line in lines]


def test_the_plugins_shown_keep_the_rules_that_are_checked_beside_them(kerb: Path) -> None:
    (kerb / "test_kerb.py").write_text(blocks_in("python test")[0])
    python(kerb, "test_kerb.py")


def test_the_commands_shown_for_plugins_work_one_after_the_other(kerb: Path) -> None:
    printed = commands(kerb, blocks_in("sh")[0])
    assert "damping" in printed[0]
    assert "a valid study" in printed[1]
    assert "best rebound" in printed[3]
    assert read_study(kerb / "results" / "kerb.study").stages[0].budget.evaluations == 96
    assert re.search(r"^last session +done$", printed[4], re.MULTILINE)
    assert "Designs tried" in (kerb / "results" / "kerb.study" / "report.html").read_text()


def test_a_store_that_cannot_be_judged_without_a_file_asks_for_it(kerb: Path) -> None:
    designopt(kerb, "run", "kerb.yaml", "--plugin", "kerb.py", "-o", "s.study", "--executor", "serial")
    for arguments in (("report", "s.study"), ("show", "s.study")):
        completed = command.designopt(kerb, *arguments)
        assert completed.returncode == 4
        text = "no plugin named 'root_mean_square'; install it, or pass the file that declares it: --plugin kerb.py"
        assert completed.stderr == f"s.study: {text}\n"
        designopt(kerb, *arguments, "--plugin", "kerb.py")


def test_the_entry_points_shown_name_the_plugins_shown(kerb: Path) -> None:
    from designopt.plugin import GROUPS

    points = tomllib.loads(blocks_in("toml")[0])["project"]["entry-points"]
    assert set(points) == set(GROUPS.values())
    source = (kerb / "kerb.py").read_text()
    targets = [address.removeprefix("kerbs:") for group in points.values() for address in group.values()]
    assert len(targets) == len(
        re.findall(r"^@(?:model|objective|solver|aggregation|report_part|exporter)\(", source, re.MULTILINE)
    )
    for group in points.values():
        for name, address in group.items():
            target = address.removeprefix("kerbs:")
            assert re.search(rf'@\w+\(\s*"{name}", version=1(?s:.*?)\)\n(?:def|class) {target}\b', source), name


# ---------------------------------------------------------------------------------------------------------- results


def test_the_commands_shown_for_results_work_one_after_the_other(kerb: Path) -> None:
    designopt(kerb, "run", "kerb.yaml", "--plugin", "kerb.py", "--executor", "serial")
    judged, compared, repeated, exported, design, followed = (
        commands(kerb, block) for block in blocks_in("sh", RESULTS)
    )
    assert judged[0].splitlines()[0].endswith("report-set.html")
    assert (kerb / "nominal.designs.csv").exists()
    assert compared[1].strip().endswith("comparison.html")
    assert repeated[1].strip() == "seeds.html"
    assert "Attainment surfaces" in (kerb / "seeds.html").read_text(encoding="utf-8")
    assert "designs.csv" in exported[0]
    assert "best rebound" in design[0]
    assert "the same as recorded, bit for bit" in design[1]
    assert (kerb / "one.npz").exists()
    assert "done" in followed[0]


def test_the_answer_to_an_edited_study_is_as_shown(kerb: Path) -> None:
    designopt(kerb, "run", "kerb.yaml", "--plugin", "kerb.py", "--executor", "serial")
    text = (kerb / "kerb.yaml").read_text()
    assert "50 kN/m" in text
    (kerb / "kerb.yaml").write_text(text.replace("50 kN/m", "60 kN/m"))
    repeated = command.designopt(kerb, "run", "kerb.yaml", "--plugin", "kerb.py")
    assert repeated.stderr.endswith(blocks_in("text", RESULTS)[0])


def test_the_lines_that_read_a_result_run_as_printed(kerb: Path) -> None:
    (kerb / "read.py").write_text(blocks_in("python result", RESULTS)[0])
    lines = python(kerb, "read.py").splitlines()
    assert [line.split(" {")[0] for line in lines[:3]] == ["best rebound", "best calm", "compromise"]
    assert "'peak'" in lines[-1]
    assert (kerb / "tables" / "designs.csv").exists()
    assert (kerb / "comparison.html").exists()


def test_the_example_of_a_validation_is_a_valid_one(kerb: Path) -> None:
    validated = {**yaml.safe_load(blocks_in("yaml")[0]), **yaml.safe_load(blocks_in("yaml", RESULTS)[0])}
    (kerb / "validated.yaml").write_text(yaml.safe_dump(validated))
    assert "a valid study" in designopt(kerb, "validate", "validated.yaml", "--plugin", "kerb.py")


def test_the_table_of_report_parts_lists_every_general_one() -> None:
    from designopt.report.page.page import FIRST, GENERIC, LAST

    assert set(listed(RESULTS, "## The report", "## Choices")) == {
        *FIRST,
        *GENERIC,
        *LAST,
        "ranking",
        "scene",
        "frames",
    }


def test_the_parts_of_a_report_without_plots_are_the_documented_ones() -> None:
    from designopt.report.page.page import FIRST, GENERIC, LAST

    middle = re.search(r"Without\s+`plots`\s+the\s+page\s+holds (.*?)\.", RESULTS, flags=re.DOTALL)
    around = re.search(r"The parts\s+(.*?) come before; (.*?) after them", RESULTS, flags=re.DOTALL)
    assert middle is not None
    assert around is not None
    groups = (middle.group(1), around.group(1), around.group(2))
    named = [tuple(re.findall(r"`(\w+)`", words)) for words in groups]
    assert named == [tuple(GENERIC), tuple(FIRST), tuple(name for name in LAST if name not in GENERIC)]


def test_the_table_of_choices_lists_every_rule() -> None:
    from typing import get_args

    from designopt.study.sections.choose import Method

    assert tuple(listed_first(RESULTS, "## Choices", "All but")) == get_args(Method)


# --------------------------------------------------------------------------------------------------------- clusters


def test_the_options_of_dask_that_are_shown_are_there() -> None:
    from distributed.cli import dask_scheduler, dask_worker

    (block,) = blocks_in("sh", page("clusters.md"))
    programs = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}
    lines = block.replace("\\\n", " ").splitlines()
    assert [line.split()[:2] for line in lines] == [["dask", "scheduler"], ["dask", "worker"]]
    for line in lines:
        options = {
            name for option in programs[line.split()[1]].params for name in [*option.opts, *option.secondary_opts]
        }
        assert set(re.findall(r"--[\w-]+", line)) <= options


# ---------------------------------------------------------------------------------------------------------- gallery


def test_the_commands_of_the_gallery_work_one_after_the_other(tmp_path: Path) -> None:
    shutil.copytree(DOCS.parent / "studies", tmp_path / "studies")
    pages = set()
    for line in "".join(blocks_in("sh", page("gallery.md"))).splitlines():
        program, *arguments = shlex.split(line)
        if program == "designopt":
            long = arguments[0] == "run" and "mount/mount.yaml" not in arguments
            designopt(tmp_path, *arguments, *(["--dry-run"] if long else []))
            continue
        assert [program, arguments[0]] == ["python", "docs/picture.py"]
        report, section = tmp_path / arguments[1], arguments[2]
        if report.exists():
            pages.add(report.name)
            assert f"<h2>{section}</h2>" in report.read_text(encoding="utf-8")
        else:
            assert re.match(r"results/(knee|knee_damper|influence)\.study/", arguments[1])
    assert pages == {"report.html", "comparison.html"}


# ---------------------------------------------------------------------------------------------------- all the pages

#: The blocks of each page that tests above, or other files, try (tests/test_tutorial.py, tests/run/...).
TRIED: dict[str, Iterable[str]] = {
    "study_files.md": {"yaml", "yaml trials", "csv trials"},  # the latter two in tests/run/test_trials.py
    "solvers.md": {"yaml"},
    "plugins.md": {"python", "python test", "sh", "toml", "yaml"},
    "results.md": {"python result", "sh", "text", "yaml"},
    "clusters.md": {"yaml", "yaml dask", "sh", "sh coordinator", "sh certificates"},
    "gallery.md": {"sh"},
    "desk.md": {"sh"},  # tests/desk/test_command.py
    "coming_from.md": {  # tests/test_coming_from.py
        "yaml",
        "yaml opensim",
        "text",
        *(f"python {name}" for name in ("ours", "ours cart", "cantilever", "optuna", "pymoo", "openmdao", "dymos")),
        "python gemseo",
        "python opensim",
    },
    "command_line.md": {"sh completion", "sh log", "python"},  # tests/test_cli_completion.py
    "trajectories.md": {"python"},  # tests/collocation/test_documentation.py
    "four_bar_knee.md": {"python", "yaml"},  # tests/designopt_knee/test_gait.py
    "estimation.md": {"python", "yaml"},  # tests/collocation/test_documentation.py, tests/designopt_motion
    "whole_body.md": {
        "python",
        "yaml",
        "yaml marker set",
        "yaml study",
    },  # tests/designopt_wholebody/test_documentation.py
    "recordings.md": {"python"},  # tests/designopt_recordings/test_documentation.py
    "own_dynamics.md": {"python", "sh"},  # tests/models/test_documentation.py
    "mechanics.md": {"python", "yaml"},  # tests/designopt_mechanics/test_documentation.py
    "mechanisms.md": {"python", "yaml"},  # tests/designopt_mechanics/test_documentation.py
    "dynamics.md": {"python"},  # tests/dynamics/test_documentation.py
    "simulation.md": {"python"},  # tests/dynamics/test_documentation.py
    "laboratory.md": {"python", "sh", "yaml", "text"},  # tests/designopt_laboratory/test_documentation.py
    "muscle_sharing.md": {"python", "yaml"},  # tests/designopt_muscle/test_documentation.py
    "linear_loops.md": {"yaml", "sh", "sh compare", "sh export"},  # tests/designopt_regulator/test_linear_loops_page.py
    "fmu_mujoco.md": {"sh", "yaml fmu", "yaml mujoco"},  # tests/designopt_external/test_documentation.py
    "external_programs.md": {  # tests/designopt_external/test_documentation.py
        "sh",
        "sh calculix",
        "c",
        "text octave",
        *(f"yaml {name}" for name in ("ends", "execution", "octave", "compiled", "frd")),
        "python subclass",
    },
    "benchmark_files.md": {"yaml", "sh", "text", "python"},  # tests/test_benchmark.py
    "dynamic_sharing.md": {"python", "yaml"},  # tests/designopt_muscle/dynamic/test_dynamic_studies.py
    "walking.md": {"python", "yaml"},  # tests/designopt_walking/test_documentation.py
}


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: path.name)
def test_every_block_of_a_page_is_one_that_is_tried(path: Path) -> None:
    if path.name == "tutorial.md":
        return  # tests/test_tutorial.py says the same of it
    text = path.read_text(encoding="utf-8")
    languages = re.findall(r"^```(.+)$", text, flags=re.MULTILINE)
    assert len(languages) == text.count("```") / 2
    assert set(languages) - set(TRIED.get(path.name, ())) == set()
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"\n\n    \S", outside)  # no block without a fence


def test_blocks_that_are_tried_once_stand_once() -> None:
    for language in ("python test", "sh", "toml", "yaml"):
        assert len(blocks_in(language)) == 1
    assert len(blocks_in("python result", RESULTS)) == len(blocks_in("yaml", RESULTS)) == 1


def test_the_extras_that_pages_name_are_those_of_the_package() -> None:
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]
    texts = [path.read_text(encoding="utf-8") for path in [DOCS.parent / "README.md", *DOCS.rglob("*.md")]]
    named = {
        e.strip() for text in texts for group in re.findall(r"designopt\[(.*?)\]'", text) for e in group.split(",")
    }
    assert named <= set(project["optional-dependencies"])


@pytest.mark.parametrize("path", [*sorted(DOCS.rglob("*.md")), DOCS.parent / "README.md"], ids=lambda path: path.name)
def test_every_table_of_a_page_is_one(path: Path) -> None:
    """A block of lines with bars is rendered as a table of a head and a row for each further line."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    for block in re.findall(r"(?:^\|.*\n?)+", text, flags=re.MULTILINE):
        rows = markdown.markdown(block, extensions=["tables"]).count("<tr>")
        assert rows == len(block.splitlines()) - 1, block.splitlines()[0]
