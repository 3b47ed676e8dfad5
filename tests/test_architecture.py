"""Imports point one way, and importing the suite loads nothing heavy."""

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: Lower layers first; a module may import its own layer and those before it.
LAYERS = (
    ("arrays", "counts", "decimal_marks", "files", "interrupts", "lazy", "printable"),
    ("plugin", "evaluation_progress"),
    ("study",),
    ("space", "canonical_form"),
    ("problem", "aggregations", "decision"),
    ("dynamics", "collocation"),
    ("models",),
    ("solvers",),
    ("store",),
    ("workers",),
    ("run",),
    ("report", "exports"),
    ("benchmarking", "function_study"),
    ("api", "testing", "templates"),
    ("desk",),
    ("cli",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

HEAVY = (
    "scipy",
    "pymoo",
    "casadi",
    "dask",
    "distributed",
    "plotly",
    "pint",
    "rich",
    "pandas",
    "matplotlib",
    "ezc3d",
    "tornado",
)


@functools.cache
def statements(path: Path) -> tuple[set[str], set[str]]:
    """Every module named in an import statement of `path`, those inside functions included; and its public classes."""
    modules: set[str] = set()
    classes: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            modules.add(node.module)
            modules |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            classes.add(node.name)
    return modules, classes


def imported_modules(path: Path) -> set[str]:
    return statements(path)[0]


def layer(module: str) -> int | None:
    parts = module.split(".")
    return RANK.get(parts[1]) if parts[0] == "designopt" and len(parts) > 1 else None


#: Wings inside a package, lower ones first; modules beside them stand above.
WINGS = {
    "designopt.study": ("language", "study", "sections"),
    "designopt.study.language": (
        "units",
        "errors",
        "yaml",
        "findings",
        "files",
        "tables",
        "expressions",
        "checking",
    ),
    "designopt.collocation.transcription": ("functions",),
    "designopt.collocation": (
        "linear",
        "statement",
        "transcription",
        "solution",
        "interior",
        "solve",
        "postoptimal",
        "estimation",
    ),
    "designopt.store": ("safe_files", "errors", "disk", "journal", "views"),
    "designopt.workers": ("private_names", "executor", "evaluation", "supervision", "remote", "carriers", "pools"),
}


def modules(*folders: Path) -> dict[str, Path]:
    """All modules below `folders` by their dotted names."""
    paths = {}
    for folder in folders:
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder.parent).with_suffix("").parts
            paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths


def edges(modules_by_name: dict[str, Path]) -> dict[str, set[str]]:
    """Which of the `known` modules each imports, inside functions and for types too; its own packages left out."""
    graph = {}
    for name, path in modules_by_name.items():
        imported = imported_modules(path)
        graph[name] = {m for m in imported & modules_by_name.keys() if m != name and not name.startswith(f"{m}.")}
        # "from package import module" is about the module
        graph[name] -= {
            m
            for m in graph[name]
            if any(longer.startswith(f"{m}.") and longer in modules_by_name for longer in imported)
        }
    return graph


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other, directly or by way of others."""
    left = dict(graph)
    while leaves := [name for name, to in left.items() if not to & left.keys()]:
        for name in leaves:
            del left[name]
    while roots := [name for name in left if not any(name in to for to in left.values())]:
        for name in roots:
            del left[name]
    return [sorted(left)] if left else []


SUITE = sorted((ROOT / "designopt").rglob("*.py"))
PLUGINS = sorted((ROOT / "plugins").rglob("*.py"))


def test_a_module_imports_only_its_own_layer_and_lower_ones() -> None:
    above = {}
    for path in SUITE:
        name = path.relative_to(ROOT / "designopt").parts[0].removesuffix(".py")
        if name in ("__init__", "__main__"):
            continue  # the public face re-exports from all layers, lazily
        assert name in RANK, f"{path.name}: give the new module a layer"
        reached = {m for m in imported_modules(path) if (rank := layer(m)) is not None and rank > RANK[name]}
        if reached:
            above[str(path.relative_to(ROOT))] = sorted(reached)
    assert not above, f"these reach up: {above}"


def test_there_is_no_circle_of_imports() -> None:
    assert circles(edges(modules(ROOT / "designopt"))) == []


@pytest.mark.parametrize("package", sorted(p.name for p in (ROOT / "plugins").iterdir() if p.is_dir()))
def test_there_is_no_circle_of_imports_in_a_plugin_package(package: str) -> None:
    assert circles(edges(modules(ROOT / "plugins" / package))) == []


def test_a_circle_of_imports_would_be_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]


def test_no_folders_of_a_package_import_each_other_in_a_circle() -> None:
    graph = edges(modules(ROOT / "designopt", *(p for p in (ROOT / "plugins").iterdir() if p.is_dir())))
    circular = {}
    for package in {name.rpartition(".")[0] for name in graph}:
        deep = package.count(".") + 1

        def folder(module: str, package: str = package, deep: int = deep) -> str | None:
            """The folder of `package` that a module is in; None for those beside the folders and elsewhere."""
            parts = module.split(".")
            return parts[deep] if module.startswith(f"{package}.") and len(parts) > deep + 1 else None

        between: dict[str, set[str]] = {}
        for module, imported in graph.items():
            if source := folder(module):
                between.setdefault(source, set()).update({target for m in imported if (target := folder(m))} - {source})
        if circles(between):
            circular[package] = circles(between)
    assert circular == {}


#: Names that several classes have because they mean the same: inputs of models, joints of two kinds of model files, and
#: figures over a motion, declared for a model or stated for a program.
SAME_MEANING = {"Conditions", "Task", "Joint", "Integral", "Peak"}


def test_two_classes_share_a_name_only_where_they_mean_the_same() -> None:
    places: dict[str, set[Path]] = {}
    for path in (*SUITE, *PLUGINS):
        for name in statements(path)[1]:
            places.setdefault(name, set()).add(path)
    assert {name for name, paths in places.items() if len(paths) > 1} == SAME_MEANING


@pytest.mark.parametrize("package", WINGS)
def test_imports_between_the_wings_of_a_package_go_one_way(package: str) -> None:
    order = WINGS[package]
    graph = edges(modules(ROOT / "designopt"))

    def wing(module: str) -> int | None:
        if not module.startswith(f"{package}."):
            return None
        name = module.removeprefix(f"{package}.").split(".")[0]
        return order.index(name) if name in order else len(order)

    for module, imported in graph.items():
        level = wing(module)
        if level is not None:
            above = {m for m in imported if (imported_level := wing(m)) is not None and imported_level > level}
            assert not above, f"{module} reaches up to {sorted(above)}"


def test_the_suite_knows_no_plugin_package() -> None:
    packages = {p.name for p in (ROOT / "plugins").iterdir() if p.is_dir()}
    assert len(packages) > 5
    plugin_imports = {path: [m for m in imported_modules(path) if m.split(".")[0] in packages] for path in SUITE}
    assert {str(path.relative_to(ROOT)): names for path, names in plugin_imports.items() if names} == {}


def test_plugins_do_not_reach_into_the_runner_or_the_command_line() -> None:
    behind = ("designopt.cli", "designopt.api", "designopt.run.")
    permitted = "designopt.store.result"  # what report parts are given
    reached = {
        path: [m for m in imported_modules(path) if m.startswith(behind) and not m.startswith(permitted)]
        for path in PLUGINS
    }
    assert {str(path.relative_to(ROOT)): names for path, names in reached.items() if names} == {}


@pytest.mark.parametrize(
    "statement",
    [
        "import designopt",
        "import designopt.problem",
        "import designopt.study.load",
        "from designopt.cli import main",
        "import designopt.solvers.sampling, designopt.solvers.evolution.many_objectives",
        "import designopt.report",
        "import designopt_knee.model",
        "import designopt_recordings.marker_filter, designopt_recordings.exports, designopt_recordings.emg",
    ],
)
def test_importing_loads_nothing_heavy(statement: str) -> None:
    code = f"import sys; {statement}; print([m for m in {HEAVY} if m in sys.modules])"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def test_the_help_of_the_command_line_loads_neither_numpy_nor_pydantic() -> None:
    code = "import sys; from designopt.cli import main; print([m for m in ('numpy', 'pydantic') if m in sys.modules])"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def test_listing_plugins_imports_none_of_them() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from designopt.cli import main\n"
        "result = CliRunner().invoke(main, ['list'])\n"
        "assert result.exit_code == 0 and 'four_bar_knee' in result.output, result.output\n"
        "print([m for m in sys.modules if m.startswith(('designopt_', 'designopt.solvers', 'designopt.aggregations'))])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """The names in backticks in each row of the first table below a heading of the page."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [re.findall(r"`(.*?)`", line) for line in section.splitlines() if line.startswith("| ")][1:]


def test_the_page_on_architecture_lists_the_folders_of_the_suite() -> None:
    packages = {
        f"{path.parent.relative_to(ROOT)}/"
        for path in SUITE
        if path.name == "__init__.py" and len(path.relative_to(ROOT).parts) in (3, 4)
    }
    assert {names[0] for names in table("Wings")} == packages


def test_the_page_on_architecture_has_the_floors_that_imports_keep_to() -> None:
    assert tuple(map(tuple, table("Floors"))) == LAYERS


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([a-z_]+/[a-z_/]+\.(?:py|c))`", PAGE))))
def test_files_that_the_page_on_architecture_names_exist(path: str) -> None:
    assert any((ROOT / folder / path).exists() for folder in ("designopt", ".", "tests/bench"))


#: Maximum number of lines of a source file; a longer one holds more than its name says.
LINES = 600


def test_no_source_file_is_above_600_lines() -> None:
    sources = [p for folder in ("designopt", "plugins", "tests") for p in (ROOT / folder).rglob("*")]
    lines = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n")
        for path in sources
        if path.suffix in (".py", ".c", ".js", ".css", ".jinja")
    }
    assert {name: count for name, count in lines.items() if count > LINES} == {}


#: Maximum number of arguments of a function; what travels together is a small frozen dataclass.
ARGUMENTS = 7
#: The reason of public functions: further options, which a call gives by keyword alone.
OPTIONS = "at most seven arguments by position, and options by keyword"
#: Functions with more, each for a reason.
MANY_ARGUMENTS = {
    **dict.fromkeys(
        ("designopt/cli/report.py:report", "designopt/cli/run.py:run", "designopt/cli/show.py:show"),
        "a command: each option is an argument",
    ),
    **dict.fromkeys(
        (
            "designopt/api.py:minimize",
            "designopt/run/runner.py:run_study",
            "designopt/study/load.py:study_from_text",
            "designopt/dynamics/system.py:from_expressions",
            "designopt/dynamics/simulation/simulator.py:run",
            "designopt/dynamics/simulation/simulator.py:simulate",
            "designopt/testing/models.py:check_model",
            "designopt/desk/server.py:serve",
            "designopt/report/traces.py:trace",
            "designopt/solvers/evolution/pymoo_search.py:search",
            "plugins/designopt_regulator/vehicle/simulation.py:simulate",
            "plugins/designopt_regulator/vehicle/quality.py:quality",
            "plugins/designopt_regulator/controllers/pid.py:sample",
            "plugins/designopt_regulator/export/program.py:program",
        ),
        OPTIONS,
    ),
    "plugins/designopt_regulator/vehicle/cascade.py:_close_loops": "the matrices of one formula",
}


def test_a_function_with_more_than_seven_arguments_has_a_reason() -> None:
    many = set()
    for path in (*SUITE, *PLUGINS):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                if len([name for name in names if name not in ("self", "cls")]) > ARGUMENTS:
                    name = f"{path.relative_to(ROOT).as_posix()}:{node.name}"
                    many.add(name)
                    if MANY_ARGUMENTS.get(name) == OPTIONS:
                        assert len(names) - len(node.args.kwonlyargs) <= ARGUMENTS, f"{name}: options by keyword alone"
    assert many <= set(MANY_ARGUMENTS), "bundle what travels together in a frozen dataclass"
    assert set(MANY_ARGUMENTS) <= many, "these have few arguments by now: remove them from the list"


def test_benchmarks_can_be_imported() -> None:
    """The quick tests leave them out, and one that fails to import stops every other selection of tests."""
    collect = [sys.executable, "-m", "pytest", "-m", "bench", "--collect-only", "-qq", "-n", "0", "tests/bench"]
    process = subprocess.run(collect, capture_output=True, text=True, cwd=ROOT, timeout=600)
    assert process.returncode == 0, process.stdout
