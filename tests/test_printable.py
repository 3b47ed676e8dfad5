"""Text of a received store, of a study file or of a model never controls the terminal."""

import io
import json
import shutil
import sqlite3
import unicodedata

import pytest
from click.testing import CliRunner
from run_cases import listed, make_study, rewrite

import designopt
from designopt.cli import main
from designopt.cli.follow import _Lines, view
from designopt.printable import one_line, printable
from designopt.run.progress import JsonLines, LiveLine, PlainLines, Snapshot, snapshot
from designopt.run.runner import run_study
from designopt.store.errors import StoreError
from designopt.store.result import Result
from designopt.study.language.errors import StudyError

#: Erases the screen, sets the title of the window, turns to the C1 form of an escape, reverses the order of reading.
HOSTILE = "\x1b[2J\x1b]0;title\x07\x9b31m\u202egnp.exe\r\x7f"
SHOWN = r"\u001b[2J\u001b]0;title\u0007\u009b31m\u202egnp.exe\r\u007f"


def controls(text):
    """The characters of `text` that control a terminal or the order of reading."""
    categories = {"Cc", "Cs", "Zl", "Zp"}
    return {c for c in text if c not in "\n\t" and (unicodedata.category(c) in categories or c in "\u202e\u2066\u200f")}


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    path = tmp_path_factory.mktemp("intact") / "s"
    run_study(make_study(names=("a",), title=HOSTILE, stages=(listed([1.0, 0.5, 0.25]),)), path)
    changes = [
        f"UPDATE evaluation SET status = 'error', reason = '{HOSTILE}', message = '{HOSTILE}\nsecond line',"
        " outputs = NULL WHERE design = 1",
        f"INSERT INTO printed SELECT key, '{HOSTILE}', 0 FROM evaluation WHERE design = 1",
        f"UPDATE session SET reason = '{HOSTILE}'",
        f"UPDATE event SET text = '{HOSTILE}'",
    ]
    rewrite(path, *changes)
    return path


@pytest.fixture
def store(intact, tmp_path):
    shutil.copytree(intact, tmp_path / "s")
    return tmp_path / "s"


def test_controls_are_shown_as_escapes_and_lines_stay():
    assert printable(f"a\n\tb{HOSTILE}") == f"a\n\tb{SHOWN}"
    assert one_line("a\n\tb") == r"a\n\tb"
    assert not controls(printable("".join(map(chr, range(0x3000)))))
    assert printable("Größe µ \u202f12 → 3 ½ 漢字") == "Größe µ \u202f12 → 3 ½ 漢字"
    assert printable(printable(HOSTILE)) == printable(HOSTILE)


def test_escapes_keep_json_what_it_is():
    assert json.loads(printable(json.dumps([HOSTILE], ensure_ascii=False))) == [HOSTILE]


def test_commands_show_the_controls_in_a_store_as_escapes(store):
    for arguments in (["show", store], ["show", f"{store}/1"], ["resume", store], ["report", store, "--export", "csv"]):
        answer = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert isinstance(answer.exception, SystemExit | None), arguments
        assert not controls(answer.output), arguments
        if arguments[0] == "show":
            assert SHOWN in answer.output


def test_a_name_in_a_store_adds_no_line_to_the_terminal(store):
    rewrite(store, "UPDATE session SET reason = 'done' || char(10) || 'last session failed'")
    answer = CliRunner().invoke(main, ["show", str(store)])
    assert r"last session done\nlast session failed" in answer.output


def test_errors_on_a_damaged_store_show_the_controls_as_escapes(store):
    (store / "problem.json").write_text(json.dumps({"study": {HOSTILE: 1}, "designopt": HOSTILE}))
    answer = CliRunner().invoke(main, ["show", str(store)])
    assert answer.exit_code == 4
    assert not controls(answer.output)
    with pytest.raises(StoreError) as caught:
        Result.open(store)
    assert not controls(str(caught.value))


def test_validate_shows_the_controls_in_a_study_file_as_escapes(tmp_path):
    study = tmp_path / "study.yaml"
    study.write_text('study: x\nmodel: {use: "\\e[2Jbowl\\u202e"}\nspace: {a: [0, \u202e1]}\n')
    for form in ("text", "json"):
        answer = CliRunner().invoke(main, ["validate", "--format", form, str(study)])
        assert answer.exit_code == 2
        assert not controls(answer.output)
        if form == "json":
            assert "\x1b[2Jbowl\u202e" in "".join(issue["message"] for issue in json.loads(answer.stdout))
    with pytest.raises(StudyError) as caught:
        designopt.load(study)
    assert not controls(str(caught.value))


@pytest.mark.parametrize("name", [f"x{HOSTILE}", f"x{HOSTILE}/1"])
def test_arguments_and_folders_are_shown_as_escapes(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    for arguments in (["show", name], ["resume", name], ["validate", name], ["show", "--every", name, "s"], [name]):
        answer = CliRunner().invoke(main, arguments)
        assert answer.exit_code in (2, 4), arguments
        assert not controls(answer.output), arguments


def test_the_list_of_stores_shows_the_controls_in_their_names(tmp_path, store):
    store.rename(tmp_path / f"{HOSTILE}\nsecond")
    answer = CliRunner().invoke(main, ["list", "stores", str(tmp_path)])
    assert answer.output == f"{tmp_path}/{SHOWN}\\nsecond\n"


def test_the_progress_shows_the_controls_in_its_texts_as_escapes():
    for display in (PlainLines, LiveLine):
        stream = io.StringIO()
        progress = display(stream)
        progress.event("warning", HOSTILE)
        progress.update(Snapshot("a", 1, 1, 1, 2, 1, 0, 0.0, 0.0, None, running=((0, 0.5, "\x9b2J\u202e"),)))
        progress.close()
        output = stream.getvalue()
        assert "warning: " + SHOWN in output.replace("\n", "")
        assert not controls(output) - {"\x1b", "\r"}  # those of the live line itself
        assert "\x1b[2J" not in output
    stream = io.StringIO()
    JsonLines(stream).event("warning", HOSTILE)
    assert json.loads(stream.getvalue())["text"] == HOSTILE


def test_a_followed_run_shows_the_controls_in_its_texts_as_escapes(store, capsys):
    from rich.console import Console

    rewrite(store, f"INSERT INTO event VALUES (77, 0.0, 1, 'warning', '{HOSTILE}', 0)")
    result = Result.open(store)
    console = Console(file=io.StringIO(), width=400)
    console.print(view(result, snapshot(result, [(0.0, 0)])))
    assert SHOWN in console.file.getvalue()
    assert not controls(console.file.getvalue())
    lines = _Lines()
    lines._shown_events = 0
    lines.update(result, snapshot(result, [(0.0, 0)]))
    output = capsys.readouterr().out
    assert SHOWN in output
    assert not controls(output)


def test_a_result_is_printed_with_escapes(store):
    result = Result.open(store)
    assert SHOWN in str(result)
    assert not controls(str(result) + repr(result))


def test_notebooks_show_a_title_and_names_as_text(tmp_path):
    markup = "<script>alert(1)</script>"
    study = make_study(names=("a",), title=markup, stages=(listed([1.0, 0.5]),))
    for page in (run_study(study, tmp_path / "s")._repr_html_(), designopt.Study(study)._repr_html_()):
        assert "<script" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_the_hostile_texts_are_in_the_store_as_they_are(store):
    db = sqlite3.connect(store / "journal.db")
    (message,) = db.execute("SELECT message FROM evaluation WHERE design = 1").fetchone()
    db.close()
    assert message == f"{HOSTILE}\nsecond line"
