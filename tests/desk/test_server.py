"""The desk as a browser meets it: what it answers, and to whom."""

import contextlib
import http.client
import itertools
import json
import os
import re
import shutil
import sys
import time
from pathlib import Path

import pytest
from command import designopt as command
from serving import PATIENCE, SPRINGS, desk

import designopt.desk

LIMIT = "constraints:\n  - {name: short, of: peak_travel, max: 90 mm}\n"
STUDY = SPRINGS.replace("solver:", LIMIT + "solver:")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study file and two stores of it."""
    path = tmp_path_factory.mktemp("desk")
    (path / "springs.yaml").write_text(STUDY.replace("SAMPLES", "8"))
    for name in ("one", "two"):
        assert command(path, "run", "springs.yaml", "-o", f"results/{name}.study").returncode == 0
    return path


@pytest.fixture(scope="module")
def client(folder):
    with desk(folder, run=True, plugin_files=[str(SLOW)]) as client:
        yield client


def wait_for(condition, what):
    """The first true value of `condition`."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    return pytest.fail(f"it did not come to this: {what}")


#: A study whose run goes on while it is looked at, and costs little.
SLOW = Path(__file__).with_name("slow_car.py")
LONG = STUDY.replace("quarter_car", "slow_car").replace("SAMPLES", "100000")

ONE = "results/one.study"


def test_the_list_has_stores_and_studies(client):
    state = client.get("/state").json
    assert {s["place"]: (s["title"], s["state"], s["evaluations"]) for s in state["stores"]} == {
        ONE: ("Springs and dampers: one", "done", 8),
        "results/two.study": ("Springs and dampers: two", "done", 8),
    }
    assert state["studies"] == ["springs.yaml"]
    assert state["run"]


def test_the_page_loads_only_what_the_desk_has(client):
    page = client.get("/")
    assert page.status == 200
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    for path in ("/desk.js", "/desk.css", "/plotly.js"):
        assert path in page.text or path == "/plotly.js"
        assert client.get(path).status == 200


def test_a_report_is_made_of_the_parts_that_are_wanted(client):
    live = client.page("/report", store=ONE, part="live")
    assert live.headers["Content-Type"].startswith("text/html")
    assert "<h2>Pareto front" in live.text or "<h2>Front" in live.text
    assert '<script src="/plotly.js">' in live.text
    assert len(live.body) < 2**20
    alone = client.page("/report", store=ONE, part="overview")
    assert alone.text.count("<h2>") == 1
    assert client.page("/report", store=ONE).text.count("<h2>") > live.text.count("<h2>")


def test_another_question_is_answered_from_what_is_on_record(client):
    question = client.get("/question", store=ONE).json
    assert [(c["name"], c["max"], c["unit"]) for c in question["constraints"]] == [("short", 90.0, "mm")]
    assert [o["name"] for o in question["objectives"]] == ["ride", "stroke"]
    assert "mean" in question["aggregations"]
    answer = client.page("/report", store=ONE, part="overview", set="constraints.short.max=1 um")
    assert "Re-scored with changes: constraints.short.max=1 um" in answer.text
    assert answer.text != client.page("/report", store=ONE, part="overview").text
    refused = client.get("/report", store=ONE, set="constraints.short.max=1 kg")
    assert refused.status == 409
    assert "kg" in refused.text
    assert client.get("/report", store=ONE, set="space.damping.low=1").status == 409  # needs a simulation


def test_a_design_is_shown_with_all_that_is_on_record(client):
    design = client.get("/design", store=ONE, row=3).json
    heads = [table[0][0] for table in design["tables"]]
    assert heads == ["parameter", "objective or limit", "figure", "evaluation"]
    assert design["tables"][0][1][0] == "stiffness"
    names = client.get("/designs", store=ONE).json
    assert "best ride" in [n["name"] for n in names]
    assert client.get("/design", store=ONE, row=8).status == 409
    assert client.get("/design", store=ONE, row="-1").status == 400


def test_a_design_is_computed_again_with_its_arrays(client):
    name = client.post("/compute", store=ONE, row=2)
    assert name.status == 200, name.text
    page = client.get("/computed", page=name.json)
    assert "the same as recorded, bit for bit" in page.text
    assert page.text.count("<figure") >= 2
    assert client.get("/computed", page="gone").status == 404


def test_stores_are_put_side_by_side(client):
    page = client.page("/compare", store=[ONE, "results/two.study"])
    assert "Comparison of" in page.text
    assert client.get("/compare", store=ONE).status == 409


def test_a_text_has_the_findings_of_validate(client, folder):
    text = (folder / "springs.yaml").read_text().replace("90 mm", "90 kg")
    (finding,) = client.post("/check", file="springs.yaml", text=text).json
    (folder / "wrong.yaml").write_text(text)
    (expected,) = json.loads(command(folder, "validate", "--format", "json", "wrong.yaml").stdout)
    (folder / "wrong.yaml").unlink()
    assert {**finding, "file": ""} == {**expected, "file": ""}
    assert (finding["line"], finding["column"]) == (11, 41)
    assert client.post("/check", file="springs.yaml", text=STUDY.replace("SAMPLES", "4")).json == []


def test_a_study_is_saved_unless_somebody_else_has(client, folder):
    study = client.get("/study", file="springs.yaml").json
    changed = study["text"].replace("Springs and", "Springs, dampers and")
    saved = client.post("/save", file="springs.yaml", text=changed, stamp=study["stamp"])
    assert saved.status == 200
    assert (folder / "springs.yaml").read_text() == changed
    late = client.post("/save", file="springs.yaml", text="study: lost", stamp=study["stamp"])
    assert late.status == 409
    assert "has changed on the disk" in late.text
    assert (folder / "springs.yaml").read_text() == changed
    client.post("/save", file="springs.yaml", text=study["text"], stamp=saved.json["stamp"])


def test_a_study_that_is_wrong_is_opened_and_keeps_its_line_ends(client, folder):
    text = STUDY.replace("damping", "dampr").replace("SAMPLES", "4")
    (folder / "windows.yaml").write_bytes(text.replace("\n", "\r\n").encode())
    study = wait_for(lambda: (a := client.get("/study", file="windows.yaml")).status == 200 and a.json, "it is listed")
    assert study["store"] == "results/windows.study"
    fixed = text.replace("dampr", "damping")
    assert client.post("/save", file="windows.yaml", text=fixed, stamp=study["stamp"]).status == 200
    assert (folder / "windows.yaml").read_bytes() == fixed.replace("\n", "\r\n").encode()
    (folder / "windows.yaml").unlink()


def test_output_of_a_run_enters_no_foreign_file(client, folder, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("keep me")
    (folder / "results" / "linked.study").mkdir()
    (folder / "results" / "linked.study.log").symlink_to(precious)
    refused = client.post("/start", file="springs.yaml", store="results/linked.study", way="")
    assert refused.status == 409
    assert "symbolic link" in refused.text
    assert precious.read_text() == "keep me"
    assert (
        client.post("/start", file="springs.yaml", store="results/springs", way="").status == 409
    )  # no name of a store


def test_why_a_run_could_not_begin_is_shown(client, folder):
    (folder / "wrong.yaml").write_text(STUDY.replace("damping", "dampr").replace("SAMPLES", "4"))
    wait_for(lambda: "wrong.yaml" in client.get("/state").json["studies"], "the study is listed")
    store = client.post("/start", file="wrong.yaml", store="results/wrong.study", way="").json["store"]
    wait_for(lambda: "dampr" in client.get("/printed", store=store).json, "what it printed is shown")
    (folder / "wrong.yaml").unlink()


def listed(client, store):
    return next((s for s in client.get("/state").json["stores"] if s["place"] == store), {"state": ""})


def state_of(client, store):
    return listed(client, store)["state"]


def test_a_study_is_started_stopped_and_resumed(client, folder):
    (folder / "long.yaml").write_text(LONG)
    wait_for(lambda: "long.yaml" in client.get("/state").json["studies"], "the study is listed")
    store = client.post("/start", file="long.yaml", store="results/long.study", way="").json["store"]
    wait_for(lambda: client.get("/progress", store=store).status == 200, "the store is there")
    wait_for(lambda: state_of(client, store) == "running", "the run is seen")
    refused = client.post("/start", file="long.yaml", store="results/long.study", way="")
    assert refused.status == 409
    assert "is running" in refused.text
    assert "is running" in client.post("/resume", store=store).text
    wait_for(
        lambda: next(s["evaluations"] for s in client.get("/state").json["stores"] if s["place"] == store) > 0,
        "it runs",
    )
    assert client.post("/stop", store=store).status == 200
    wait_for(lambda: state_of(client, store) == "interrupted", "the run has stopped")
    assert "no run is at work" in client.post("/stop", store=store).text
    assert "interrupted" in wait_for(lambda: client.get("/printed", store=store).json, "what it printed is shown")
    assert client.post("/resume", store=store).status == 200
    wait_for(lambda: state_of(client, store) == "running", "it goes on")
    client.post("/stop", store=store)
    wait_for(lambda: state_of(client, store) == "interrupted", "the run has stopped again")


def test_an_edited_study_is_started_in_one_of_the_offered_ways(client, folder):
    (folder / "edited.yaml").write_text(STUDY.replace("SAMPLES", "16"))
    start = {"file": "edited.yaml", "store": "results/edited.study"}
    wait_for(lambda: "edited.yaml" in client.get("/state").json["studies"], "the study is listed")
    store = client.post("/start", **start, way="").json["store"]
    wait_for(lambda: state_of(client, store) == "done", "the run is done")
    assert client.post("/start", **start, way="").json == {"store": store}  # unchanged: continued
    assert client.post("/start", **start, way="--delete").status == 400
    (folder / "edited.yaml").write_text(STUDY.replace("SAMPLES", "24"))
    offer = client.post("/start", **start, way="").json
    assert offer["differences"] == ["stage sobol: solver with samples 24 instead of 16"]
    assert [option for option, _ in offer["ways"]] == ["--beside", "--replace"]
    assert offer["ways"][0][1].startswith(
        "a new store, edited.2.study; takes over evaluations with the same keys: up to 16 of 16"
    )
    beside = client.post("/start", **start, way="--beside").json["store"]
    assert beside == "results/edited.2.study"
    wait_for(lambda: listed(client, beside).get("evaluations") == 24, "it has all evaluations")
    wait_for(lambda: "16 evaluations taken over" in client.get("/progress", store=beside).text, "they are counted")


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_a_run_outlives_the_desk_and_the_desk_a_run(folder):
    shutil.rmtree(folder / "results" / "outlives.study", ignore_errors=True)
    (folder / "outlives.yaml").write_text(LONG)
    with desk(folder, run=True, plugin_files=[str(SLOW)]) as first:
        store = first.post("/start", file="outlives.yaml", store="results/outlives.study", way="").json["store"]
        wait_for(lambda: state_of(first, store) == "running", "the run is seen")
    with desk(folder, run=True, plugin_files=[str(SLOW)]) as second:
        assert state_of(second, store) == "running"
        note = json.loads((folder / store / "lock").read_text())
        os.kill(note["pid"], 9)
        wait_for(lambda: state_of(second, store) != "running", "its end is seen")
        assert second.get("/report", store=store, part="live").status == 200


def test_the_figures_of_a_run_hold_all_that_is_on_record_when_they_are_asked_for(folder):
    """The page looks twice a second and draws what has changed; a benchmark times it in a browser."""
    script = (Path(designopt.desk.__file__).parent / "desk.js").read_text(encoding="utf-8")
    assert int(re.search(r"const POLL = (\d+)", script)[1]) <= 500
    (folder / "grows.yaml").write_text(LONG)
    with desk(folder, run=True, plugin_files=[str(SLOW)]) as client:

        def listed():
            return next((s for s in client.get("/state").json["stores"] if s["place"] == store), {"evaluations": 0})

        def evaluations_on_page():
            page = client.page("/report", store=store, part="live").text
            return int(re.search(r"<dt>evaluations</dt><dd>([\d\s\u202f,]+)</dd>", page)[1].translate(SPACES))

        store = client.post("/start", file="grows.yaml", store="results/grows.study", way="").json["store"]
        wait_for(lambda: listed()["evaluations"] > 0, "it has begun")
        for _ in range(3):
            before = listed()["evaluations"]
            assert evaluations_on_page() >= before
            wait_for(lambda least=before: listed()["evaluations"] > least, "it goes on")
        client.post("/stop", store=store)
        wait_for(lambda: state_of(client, store) != "running", "it has stopped")
        assert evaluations_on_page() == listed()["evaluations"]


# ---------------------------------------------------------------------------------------------------- who is refused

#: What separates thousands.
SPACES = {ord(c): None for c in " \u202f\u00a0,"}

GETS = (
    "/state", f"/report?store={ONE}", f"/compare?store={ONE}&store={ONE}",
    f"/question?store={ONE}", f"/progress?store={ONE}", f"/designs?store={ONE}", f"/design?store={ONE}&row=0",
    f"/printed?store={ONE}", "/computed?page=x", "/study?file=springs.yaml", "/nothing",
)  # fmt: skip
#: The page without data, which asks for a session, and its files.
PUBLIC = ("/", "/desk.js", "/desk.css", "/plotly.js")
POSTS = ("/compute", "/check", "/save", "/start", "/stop", "/resume")
STRANGERS = {
    "no session": {"Authorization": None},
    "another session": {"Authorization": "Bearer abc"},
    "a cookie of another port": {"Authorization": None, "Cookie": "designopt-desk=abc"},
    "another name of this machine": {"Host": "evil.example"},
    "another page": {"Origin": "http://evil.example"},
    "a page of another port": {"Origin": "http://127.0.0.1:1"},
    "an embedded request": {"Sec-Fetch-Site": "cross-site"},
}


def test_a_hundred_hostile_requests_are_tried() -> None:
    assert len(STRANGERS) * (len(GETS) + len(POSTS)) + len(PLACES) > 100


@pytest.mark.parametrize("who", STRANGERS)
def test_strangers_get_nothing_and_change_nothing(client, folder, who):
    before = sorted(str(p) for p in folder.rglob("*"))
    body = json.dumps({"file": "springs.yaml", "store": ONE, "row": 0, "text": "", "stamp": ""}).encode()
    for path in GETS if "Authorization" in STRANGERS[who] else (*GETS, *PUBLIC):
        refused = client.ask("GET", path, headers=STRANGERS[who])
        assert refused.status == (404 if path.startswith("/computed") and "Authorization" in STRANGERS[who] else 403)
        assert len(refused.body) < 200
    for path in POSTS:
        assert client.ask("POST", path, body, STRANGERS[who]).status == 403, path
    assert sorted(str(p) for p in folder.rglob("*")) == before


PLACES = (
    "", ".", "..", "../..", "/etc", "/etc/passwd", "results/../../x", "results\\one.study", "\0", "%2e%2e", "no.study",
    "é" * 300,
)  # fmt: skip


@pytest.mark.parametrize("outside", PLACES)
def test_places_outside_the_folder_are_not_there(client, outside):
    for path in ("/report", "/question", "/progress", "/design", "/designs", "/printed", "/compare"):
        assert client.get(path, store=outside, row=0).status == 404, path
    assert client.get("/study", file=outside).status == 404
    for path in ("/stop", "/resume", "/compute"):
        assert client.post(path, store=outside, row=0).status == 404, path
    assert client.post("/save", file=outside, text="", stamp="").status == 404


def test_a_name_of_nothing_is_answered_with_what_may_be_meant(client):
    answer = client.get("/question", store="results/onne.study")
    assert answer.status == 404
    assert answer.text == "there is no store 'results/onne.study' here; did you mean 'results/one.study'?"


@pytest.mark.parametrize(
    "store", ["", " ", ".", "..", "../out.study", "/tmp/out.study", "results/../../out", "results/../"]
)
def test_results_stay_below_the_folder(client, folder, store):
    refused = client.post("/start", file="springs.yaml", store=store, way="")
    assert refused.status == 409
    assert not (folder.parent / "out.study").exists()


BODIES = {
    "nothing": b"", "no JSON": b"{", "a list": b"[]", "deep": b"[" * 100_000, "no names": b"{}",
    "an object": b'{"store": {}, "row": 0}', "not UTF-8": b"\xff\xfe",
    "a row that is none": b'{"store": "x", "row": "1e9"}',
}  # fmt: skip


@pytest.mark.parametrize("what", BODIES)
def test_empty_bodies_are_refused(client, what):
    assert client.ask("POST", "/compute", BODIES[what]).status in (400, 404)
    assert client.ask("POST", "/compute", BODIES[what], {"Content-Type": "text/plain"}).status == 400


def test_oversized_requests_are_refused(client):
    for path in POSTS:
        with contextlib.suppress(ConnectionError, http.client.HTTPException):  # closed before it was read
            assert client.ask("POST", path, b" " * (5 * 2**20)).status in (400, 413)
    assert client.ask("GET", "/state?" + "x" * 60_000, headers={}).status in (200, 400, 414)
    assert client.get("/state").status == 200  # and it goes on


def test_other_methods_are_refused(client):
    for method, path in itertools.product(("PUT", "DELETE", "PATCH"), ("/", "/state", "/save")):
        assert client.ask(method, path, b"{}").status == 405


def test_another_user_is_refused(client, monkeypatch):
    monkeypatch.setattr("designopt.desk.handler.another_user", lambda peer, port: True)
    assert client.get("/state").status == 403


def test_a_desk_that_only_shows_changes_nothing(folder):
    before = (folder / "springs.yaml").read_bytes()
    with desk(folder) as client:
        assert not client.get("/state").json["run"]
        for path in ("/save", "/start", "/stop", "/resume", "/compute"):
            refused = client.post(path, file="springs.yaml", store=ONE, row=0, text="", stamp="")
            assert refused.status == 409
            assert "designopt desk --run" in refused.text
        assert client.post("/check", file="springs.yaml", text="study: x").json != []
    assert (folder / "springs.yaml").read_bytes() == before
