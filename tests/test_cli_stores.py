"""Commands that look at stores, from end to end: one design, reports and exports, a run looked on at, odd outputs."""

import contextlib
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from designopt import open_store
from designopt.cli import main
from designopt.cli.design import comparison

MODEL = '''
import time
from typing import Annotated, TypedDict
import numpy as np
from designopt import Array, Diverged, Quantity as Q, model

class Out(TypedDict):
    mass: Annotated[float, Q("kg", "mass of the rod")]
    pitch: Annotated[float, Q("Hz", "lowest tone")]

@model("rod", version=1, arrays={"place": Array(("place",), "m"), "bow": Array(("place",), "", "first mode")})
def rod(design, scenario, arrays, *, pause: Annotated[float, Q("s", "time that it takes", ge=0)] = 0.0
        ) -> tuple[Out, dict[str, np.ndarray]]:
    """A clamped rod, warm or cold."""
    time.sleep(pause)
    side = design["side"] * (1.0 + CHANGED)
    if side < 0.004:
        raise Diverged("the section folds", reason="folded")
    place = np.linspace(0.0, 1.0, 11)
    kept = {"place": place, "bow": place**2}
    pitch = 830.0 * side * scenario.get("softening", 1.0)
    return {"mass": 7850.0 * side**2, "pitch": pitch}, {name: kept[name] for name in arrays}
'''

STUDY = """\
study: rod
model: {use: rod}
scenarios:
  - {name: cold}
  - {name: warm, softening: 0.9}
space:
  side: {low: 0.002, high: 0.05, scale: log}
  colour: {value: red}
objectives:
  - {name: mass, minimize: mass, unit: g}
  - {name: tone, maximize: pitch}
constraints:
  - {name: light, of: mass, max: 10 kg}
  - {name: audible, of: pitch, min: 10 Hz}
stages:
  - {name: look, solver: {use: full_factorial, levels: 20}}
execution: {executor: serial, arrays: [bow]}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a plugin, a study and the store of its run."""
    path = tmp_path_factory.mktemp("rods")
    (path / "rod.py").write_text(MODEL.replace("CHANGED", "0.0"))
    (path / "rod.yaml").write_text(STUDY)
    with contextlib.chdir(path):
        assert designopt("run", "rod.yaml", "--plugin", "rod.py").exit_code == 0
    return path


@pytest.fixture(autouse=True)
def work_in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def designopt(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def process(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "designopt", *arguments]
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 60, **options}
    return subprocess.run(command, **settings)  # type: ignore[call-overload, no-any-return]


STORE = "results/rod.study"

# ------------------------------------------------------------------------------------------------------- one design


def test_a_design_is_shown_with_values_figures_margins_arrays_and_the_way_to_compute_it_again() -> None:
    row = open_store(STORE).chosen()["best tone"]
    answer = designopt("show", f"{STORE}/{row}")
    assert answer.exit_code == 0, answer.output
    text = answer.output
    result = open_store(STORE)
    side = float(result.outcomes.X[row, 0])
    assert f"design {row} of {STORE}: best tone, on the front" in text
    assert f"{STORE}: compromise, recommended, on the front" in designopt("show", f"{STORE}/recommended").output
    assert re.search(rf"^side +{side!r} *$", text, re.MULTILINE)
    assert re.search(r"^colour +red +fixed$", text, re.MULTILINE)
    warm = float(result.outcomes.figures["pitch"][row, 1])
    assert re.search(rf"^tone +{warm:.6g} +Hz +maximize$", text, re.MULTILINE)  # the worst one
    mass = 1000.0 * float(result.outcomes.figures["mass"][row, 0])  # in the objective's unit
    assert re.search(rf"^light +{mass:.6g} +g +<= 10000 +margin {10000.0 - mass:.4g}$", text, re.MULTILINE)
    assert re.search(rf"^pitch +\S+ +{warm:.6g} +Hz$", text, re.MULTILINE)
    assert re.search(r"^warm +ok +\S+ s +[0-9a-f]{32}$", text, re.MULTILINE)
    assert "asked by stage look, ask " in text
    assert re.search(r"^bow +warm +11 +place$", text, re.MULTILINE)
    assert f"designopt show {STORE}/{row} --plugin rod.py --evaluate --arrays FILE.npz" in text


@pytest.mark.parametrize("scenario", [0, 1])
def test_a_design_is_found_by_number_label_and_the_beginning_of_a_key(scenario: int) -> None:
    result = open_store(STORE)
    row = result.chosen()["best mass"]
    key = result.problem.keys(result.outcomes.X[row : row + 1])[0][scenario].hex()
    pages = [designopt("show", f"{STORE}/{point}").output for point in (str(row), "best mass", key, key[:10].upper())]
    assert len(set(pages)) == 1
    assert pages[0].startswith(f"design {row} of")


def test_the_recommended_design_and_the_compromise_have_names_in_every_store() -> None:
    result = open_store(STORE)
    recommended, compromise = result.recommended(), result.compromise()
    assert recommended is not None
    for name, row in (("recommended", recommended[1]), ("compromise", compromise)):
        assert designopt("show", f"{STORE}/{name}").output.startswith(f"design {row} of")
    assert "best" not in result.rows_by_name()  # of which objective


@pytest.mark.parametrize(
    ("point", "text"),
    [
        ("best mas", "no design 'best mas': it has designs 0 to 19; did you mean 'best mass'?"),
        ("20", "no design '20': it has designs 0 to 19; names: 'recommended', 'compromise', 'best mass', "),
        ("recomended", "did you mean 'recommended'?"),
        ("ffffffffff", "no design 'ffffffffff'"),
        ("report.html", "no design 'report.html'"),
    ],
)
def test_a_design_that_is_not_there_is_reported_with_those_that_are(point: str, text: str) -> None:
    answer = designopt("show", f"{STORE}/{point}")
    assert answer.exit_code == 2
    assert text in answer.output


def test_a_design_of_a_store_that_is_not_there_is_answered_with_the_nearest_store() -> None:
    for command in (("show",), ("export", "--controller", "c")):
        answer = designopt(*command, "results/rot.study/best")
        assert answer.exit_code == 2
        assert "; did you mean 'results/rod.study'?" in answer.output


def test_a_failed_design_is_shown_with_its_message() -> None:
    output = designopt("show", f"{STORE}/0").output
    assert "design 0 of results/rod.study: failed" in output
    assert re.search(r"^cold +diverged \(folded\)", output, re.MULTILINE)
    assert "warm: the section folds" in output
    assert re.search(r"^mass +no value +g +minimize$", output, re.MULTILINE)
    recomputed = designopt("show", f"{STORE}/0", "--plugin", "rod.py", "--evaluate")
    assert recomputed.exit_code == 0, recomputed.output
    assert re.search(r"^recomputed in warm: diverged in .* s: the same as recorded$", recomputed.output, re.MULTILINE)


def test_a_design_computed_again_is_the_same_bit_for_bit_and_gives_its_arrays(tmp_path: Path) -> None:
    file = tmp_path / "best.npz"
    recomputed = designopt("show", f"{STORE}/best tone", "--plugin", "rod.py", "--evaluate", "--arrays", str(file))
    assert recomputed.exit_code == 0, recomputed.output
    for scenario in ("cold", "warm"):
        line = rf"^recomputed in {scenario}: ok in .* s: the same as recorded, bit for bit$"
        assert re.search(line, recomputed.output, re.MULTILINE)
    with np.load(file) as arrays:
        assert sorted(arrays.files) == ["bow@cold", "bow@warm", "place@cold", "place@warm"]
        assert (arrays["bow@warm"] == np.linspace(0.0, 1.0, 11) ** 2).all()


def test_a_figure_that_is_infinite_again_is_the_same_as_recorded(tmp_path: Path) -> None:
    endless = MODEL.replace("CHANGED", "0.0").replace('"pitch": pitch', '"pitch": pitch, "life": float("inf")')
    declared = 'Q("Hz", "lowest tone")]\n    life: NotRequired[Annotated[float, Q("s", "until it breaks")]]'
    (tmp_path / "rod.py").write_text(
        endless.replace('Q("Hz", "lowest tone")]', declared).replace("import Ann", "import NotRequired, Ann")
    )
    store = str(tmp_path / "s.study")
    assert process("run", "rod.yaml", "--plugin", str(tmp_path / "rod.py"), "-o", store).returncode == 0
    recomputed = process("show", f"{store}/best tone", "--plugin", str(tmp_path / "rod.py"), "--evaluate")
    assert recomputed.returncode == 0, recomputed.stdout + recomputed.stderr
    assert recomputed.stdout.count("the same as recorded") == 2


def test_a_design_that_gives_other_numbers_is_reported_with_the_difference_and_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "rod.py").write_text(MODEL.replace("CHANGED", "1e-9"))
    recomputed = process("show", f"{STORE}/best tone", "--plugin", str(tmp_path / "rod.py"), "--evaluate")
    assert recomputed.returncode == 1, recomputed.stderr
    assert re.search(r"^recomputed in cold: .*mass was \S+, now \S+ \(2e-09 of it\)", recomputed.stdout, re.MULTILINE)


def test_a_design_that_differs_by_rounding_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "rod.py").write_text(MODEL.replace("CHANGED", "1e-14"))
    recomputed = process("show", f"{STORE}/best tone", "--plugin", str(tmp_path / "rod.py"), "--evaluate")
    assert recomputed.returncode == 0, recomputed.stdout
    text = r"the same as recorded, but \d figures? differs? by at most \de-1\d of its largest value, which is rounding$"
    assert re.search(text, recomputed.stdout, re.MULTILINE)


def test_of_many_figures_that_differ_the_three_largest_differences_are_named() -> None:
    figures = {f"y{i}": np.array([[1.0]]) for i in range(9)}
    outcomes = SimpleNamespace(figures=figures)
    result: Any = SimpleNamespace(status=np.array([["ok"]]), outcomes=outcomes)
    outputs = {f"y{i}": 1.0 + 0.01 * i for i in range(9)}
    evaluation: Any = SimpleNamespace(status="ok", ok=True, outputs=outputs, message="")
    text, is_equal = comparison(result, 0, 0, evaluation)
    assert not is_equal
    assert text.startswith("8 figures differ, most of all y8 was 1.0, now 1.08 (0.08 of it); y7 was")
    assert text.count(" was ") == 3


def test_a_design_whose_model_is_not_there_asks_for_the_file() -> None:
    recomputed = process("show", f"{STORE}/best tone", "--evaluate")
    assert recomputed.returncode == 4
    text = "no plugin named 'rod'; install it, or pass the file that declares it: --plugin rod.py"
    assert recomputed.stderr == f"{STORE}: {text}\n"
    assert "Traceback" not in recomputed.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("nsga2", "--evaluate"), "--evaluate is for one design"),
        ((STORE, "--evaluate"), "--evaluate is for one design, not for a whole store; name a design: STORE/POINT"),
        (("nsga2", "--follow"), "--follow is for a store"),
        ((f"{STORE}/3", "--follow"), "--follow is for a store, not for one design"),
        ((STORE, "--every", "3"), "--every and --report need --follow"),
        ((f"{STORE}/3", "--arrays", "a.npz"), "--arrays needs --evaluate"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else "",
)
def test_options_of_show_that_do_not_fit_are_refused(arguments: tuple[str, ...], text: str) -> None:
    answer = designopt("show", *arguments)
    assert answer.exit_code == 2
    assert text in " ".join(answer.output.split())


# ------------------------------------------------------------------------------------------------ reports, exports


def test_exports_lie_beside_the_page_and_bear_its_name_when_it_is_not_the_stores_own(tmp_path: Path) -> None:
    assert designopt("report", STORE, "--export", "csv").exit_code == 0
    assert (Path(STORE) / "designs.csv").exists()
    answer = designopt("report", STORE, "-o", str(tmp_path / "rods.html"), "--export", "csv", "--export", "csv")
    assert answer.exit_code == 0, answer.output
    assert answer.output.split() == [
        str(tmp_path / name) for name in ("rods.html", "rods.designs.csv", "rods.designs.csv-metadata.json")
    ]
    assert (tmp_path / "rods.designs.csv").read_bytes() == (Path(STORE) / "designs.csv").read_bytes()


def test_of_a_format_with_many_files_only_the_first_has_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / f"walk{k}.sto" for k in range(6)]
    monkeypatch.setattr("designopt.exports.export", lambda *_, **__: files)
    answer = designopt("report", STORE, "--export", "sto")
    assert answer.output.splitlines()[1:] == [
        str(files[0]),
        f"{tmp_path}: 5 more files of the format sto: walk1.sto, walk2.sto, walk3.sto, walk4.sto, walk5.sto",
    ]


def test_a_study_may_ask_for_exports_after_its_run(tmp_path: Path) -> None:
    store = str(tmp_path / "s.study")
    options = ("--set", "report.export=[csv, netcdf]", "--set", "execution.arrays=[]")
    answer = designopt("run", "rod.yaml", "--plugin", "rod.py", "-o", store, *options)
    assert answer.exit_code == 4, answer.output
    assert f"export       {store}/designs.csv\n" in answer.output
    assert "not exported: " in answer.stderr
    assert "no arrays are kept" in answer.stderr
    assert "The results are kept." in answer.stderr


def test_an_export_that_cannot_be_written_is_written_when_the_run_is_resumed(tmp_path: Path) -> None:
    store = tmp_path / "s.study"
    run = designopt("run", "rod.yaml", "--plugin", "rod.py", "-o", str(store), "--set", "report.export=[csv]")
    assert run.exit_code == 0, run.output
    (store / "designs.csv").unlink()
    (store / "designs.csv").mkdir()
    answer = designopt("resume", str(store), "--plugin", "rod.py")
    assert answer.exit_code == 4
    assert f"not exported: {store}: the csv export cannot be written (Is a directory)" in answer.stderr
    assert "The results are kept. After removing the cause" in answer.stderr
    (store / "designs.csv").rmdir()
    answer = designopt("resume", str(store), "--plugin", "rod.py")
    assert answer.exit_code == 0, answer.output
    assert (store / "designs.csv").is_file()


def test_several_stores_get_a_report_each(tmp_path: Path) -> None:
    store = str(tmp_path / "t.study")
    assert designopt("run", "rod.yaml", "--plugin", "rod.py", "-o", store).exit_code == 0
    answer = designopt("report", STORE, store)
    assert answer.output.split() == [f"{STORE}/report.html", f"{store}/report.html"]


def test_results_judged_anew_get_a_page_of_their_own_and_the_store_stays(tmp_path: Path) -> None:
    before = (Path(STORE) / "journal.db").read_bytes()
    answer = designopt("report", STORE, "--set", "objectives.tone.over=mean", "--export", "csv")
    assert answer.exit_code == 0, answer.output
    names = ("report-set.html", "report-set.designs.csv", "report-set.designs.csv-metadata.json")
    *paths, head, first = answer.output.splitlines()[:5]
    assert paths == [f"{STORE}/{name}" for name in names]
    assert head.split()[0] == "design"
    assert first.startswith("best")
    page = Path(f"{STORE}/report-set.html").read_text()
    assert "Re-scored with changes: objectives.tone.over=mean." in page
    assert "Re-scored" not in Path(f"{STORE}/report.html").read_text()
    with open(f"{STORE}/report-set.designs.csv", newline="") as stream:
        row = {head.partition(" [")[0]: value for head, value in list(csv.DictReader(stream))[-1].items()}
    mean = (float(row["pitch@cold"]) + float(row["pitch@warm"])) / 2.0
    assert float(row["tone"]) == pytest.approx(mean, rel=1e-15)
    assert (Path(STORE) / "journal.db").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        ("objectives.tone.over=men", 2, "did you mean 'mean'?"),
        ("space.side.high=2", 4, f"{STORE}: "),
    ],
)
def test_a_change_that_cannot_be_judged_anew_is_reported(change: str, code: int, text: str) -> None:
    answer = designopt("report", STORE, "--set", change)
    assert answer.exit_code == code
    assert text in answer.output
    assert not isinstance(answer.exception, Exception)


def test_limits_that_no_stored_design_meets_are_reported_with_exit_code_1() -> None:
    answer = designopt("report", STORE, "--set", "constraints=[{of: pitch, max: 1e-9}]")
    assert answer.exit_code == 1, answer.output
    assert f"{STORE}: no design satisfies the present limits" in answer.output


def test_a_folder_with_the_name_of_a_plugin_hides_it_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nsga2").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "nsga2 (solver, version" in designopt("show", "nsga2").output
    (tmp_path / "empty").mkdir()
    assert "is not a store" in designopt("show", "empty").output


def test_stores_are_compared_on_one_page(tmp_path: Path) -> None:
    store = str(tmp_path / "heavy.study")
    options = ("--set", "objectives.mass.unit=kg", "--set", "space.side.high=0.04")
    assert designopt("run", "rod.yaml", "--plugin", "rod.py", "-o", store, *options).exit_code == 0
    page = tmp_path / "both.html"
    answer = designopt("report", STORE, store, "--compare", "-o", str(page))
    assert answer.exit_code == 0, answer.output
    assert answer.output == f"{page}\n"
    text = page.read_text()
    assert "Comparison of rod and heavy" in text
    assert designopt("report", STORE, store, "--compare", "-o", str(tmp_path / "no" / "x.html")).exit_code == 4


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((STORE, "--compare"), "--compare needs at least two stores"),
        ((STORE, STORE, "-o", "x.html"), "-o names one page; use --compare"),
        ((STORE, STORE, "--compare", "--export", "csv"), "omit --compare"),
        ((STORE, "--export", "xlsx"), "no plugin named 'xlsx' (installed: controller, csv, "),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else "",
)
def test_options_of_report_that_do_not_fit_are_refused(arguments: tuple[str, ...], text: str) -> None:
    answer = designopt("report", *arguments)
    assert answer.exit_code == 2
    assert text in " ".join(answer.output.split())


# ------------------------------------------------------------------------------------------------------- listing


def test_the_stores_of_a_folder_are_listed() -> None:
    assert designopt("list", "stores").output == f"{STORE}\n"
    assert designopt("list", "stores", "results").output == f"{STORE}\n"
    assert designopt("list", "stores", STORE).output == f"{STORE}\n"
    missing = designopt("list", "stores", "nowhere")
    assert missing.exit_code == 2
    assert "nowhere is no folder: it does not exist" in missing.output
    assert designopt("list", "models", "results").exit_code == 2


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (".", ". is a folder; give its study files: designopt validate ./*.yaml"),
        (STORE, f"{STORE} is a store; its study was checked when it ran"),
        ("*.yml", "no file matches *.yml"),
    ],
)
def test_files_that_are_not_studies_are_reported(file: str, text: str) -> None:
    answer = designopt("validate", file)
    assert answer.exit_code == 2
    assert text in answer.output


# ------------------------------------------------------------------------------------------------------- following


@pytest.fixture
def running(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A run at work, of 40 evaluations of so many seconds each, and its store."""
    store = str(tmp_path / "slow.study")
    command = [sys.executable, "-m", "designopt", "run", "rod.yaml", "--plugin", "rod.py", "-o", store]
    options = ["--set", f"model.pause={request.param}", "--set", "execution.arrays=[]"]
    run = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 300.0
    while time.monotonic() < deadline and not _recorded(store):
        time.sleep(0.05)
    yield run, store
    run.kill()
    run.wait()


def _recorded(store: str) -> bool:
    return (Path(store) / "journal.db").exists() and bool(open_store(store).sessions)


@pytest.mark.parametrize("running", [0.1], indirect=True)
def test_a_run_is_looked_on_at_until_it_ends(running: tuple[subprocess.Popen[bytes], str]) -> None:
    run, store = running
    followed = designopt("show", store, "--follow", "--every", "0.3", "--report", "60")
    assert followed.exit_code == 0, followed.output
    assert run.wait(timeout=300) == 0
    lines = followed.stdout.splitlines()
    states = [line for line in lines if re.match(r"\d\d:\d\d:\d\d look \(1/1\): \d+", line)]
    assert len(states) >= 2
    assert " 20 designs" in states[-1]
    assert re.search(r"best of each: mass [\d.]+, tone [\d.]+", states[-1])
    assert re.search(r"^last session +done$", followed.stdout, re.MULTILINE)
    assert (Path(store) / "report.html").exists()


@pytest.mark.parametrize("running", [5.0], indirect=True)
def test_ctrl_c_ends_the_looking_and_leaves_the_run_alone(running: tuple[subprocess.Popen[bytes], str]) -> None:
    run, store = running
    command = [sys.executable, "-m", "designopt", "show", store, "--follow", "--every", "0.2"]
    look = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert look.stdout is not None
    assert "look (1/1)" in look.stdout.readline()
    os.kill(look.pid, signal.SIGINT)
    _, errors = look.communicate(timeout=300)
    assert look.returncode == 130
    assert f"the run continues: designopt show {store} --follow" in errors
    assert "Traceback" not in errors
    assert run.poll() is None


def test_a_store_at_which_nothing_works_is_shown_at_once() -> None:
    answer = designopt("show", STORE, "--follow")
    assert answer.exit_code == 0
    assert f"no run is active on {STORE}" in answer.stderr
    assert re.search(r"^last session +done$", answer.stdout, re.MULTILINE)


def test_the_view_on_a_terminal_tells_how_far_the_run_is_and_what_is_best() -> None:
    from rich.console import Console

    from designopt.cli.follow import snapshot, view

    result = open_store(STORE)
    state = snapshot(result, deque([(0.0, 0), (2.0, 40)]))
    with open(os.devnull, "w") as nowhere:
        console = Console(width=100, record=True, file=nowhere)
        console.print(view(result, replace(state, total=40)))
    text = console.export_text()
    assert text.splitlines()[:1] == ["rod"]
    assert re.search(r"^━+ *$", text, re.MULTILINE)
    assert re.search(r"^look \(1/1\): 20/40 designs, ", text, re.MULTILINE)
    assert "20/s" in text
    assert re.search(r"best +tone [\d.]+", text)
    assert re.search(r"failed +diverged \(folded\) \d+", text)


# ------------------------------------------------------------------------------------------------- odd outputs


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [("list",), ("show", STORE)])
def test_an_output_that_is_full_ends_with_a_sentence(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        completed = process(*arguments, stdout=full)
    assert completed.returncode == 4
    assert completed.stderr == "error: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize("arguments", [("--help",), ("list",)])
def test_a_reader_that_goes_away_ends_the_command_quietly(arguments: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    completed = process(*arguments, stdout=write)
    os.close(write)
    assert completed.returncode == 141  # as of any program that a closed pipe ends
    assert completed.stderr == ""


def test_ctrl_c_ends_any_command_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("designopt.api.open_store", interrupted)
    answer = designopt("report", STORE)
    assert answer.exit_code == 130
    assert answer.output == "interrupted\n"


def test_a_change_to_a_store_of_a_plugin_file_asks_for_the_file() -> None:
    completed = process("report", STORE, "--set", "objectives.tone.over=mean")
    assert completed.returncode == 2
    assert completed.stderr.startswith(f"{STORE}: the run used --plugin rod.py, which is needed here too\n")


def test_the_schema_is_json() -> None:
    assert json.loads(designopt("show", "schema").output)["title"] == "designopt study"
