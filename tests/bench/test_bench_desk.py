"""Delay of the desk's view of a running study, in a real browser. Run with: pytest -m bench -s."""

import contextlib
import sqlite3
import statistics
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "desk"))
sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
from browser import headless_browser, wait_until
from serving import SPRINGS, desk

pytestmark = pytest.mark.bench

STUDY = SPRINGS.replace("SAMPLES", "1000000")
#: Seconds for which the page is watched.
WATCHED = 20.0
#: The time of the browser, and the numbers of evaluations in the list and in the figures.
LOOK = r"""
    const digits = text => Number((text || "").replace(/[^0-9]/g, ""));
    const listed = document.querySelector("#stores .running small + small");
    const page = document.querySelector("#frames iframe:not(.next)")?.contentDocument;
    const terms = [...(page?.querySelectorAll("dt") ?? [])];
    const drawn = terms.find(term => term.textContent === "evaluations")?.nextElementSibling;
    const count = listed?.textContent.match(/(\d+) evaluations/);
    return [Date.now() / 1000, count ? Number(count[1]) : 0, digits(drawn?.textContent)];
"""


def test_the_page_of_a_running_study_is_never_older_than_two_seconds(tmp_path, record_property):
    """The delay is the age of the first recorded evaluation that the view lacks."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "springs.yaml").write_text(STUDY)
    with headless_browser(tmp_path / "profile") as browser, desk(folder, run=True) as client:
        store = client.post("/start", file="springs.yaml", store="results/springs.study", way="").json["store"]
        browser.get(client.addresses[-1])

        def running():
            return browser.find_elements("css selector", "#stores .running button")

        wait_until(running, "the run is listed")[0].click()
        wait_until(lambda: browser.execute_script(LOOK)[2] > 0, "its figures are drawn")
        looks, end = [], time.monotonic() + WATCHED
        while time.monotonic() < end:
            looks.append(browser.execute_script(LOOK))
            time.sleep(0.05)
        client.post("/stop", store=store)
        wait_until(lambda: not running(), "it has stopped")
    with contextlib.closing(sqlite3.connect(folder / store / "journal.db")) as db:
        finished = [time for (time,) in db.execute("SELECT finished FROM evaluation ORDER BY finished")]
    for what, column in (("list", 1), ("figures", 2)):
        ages = [max(0.0, look[0] - finished[look[column]]) for look in looks if look[column] < len(finished)]
        print(f"\n{what}: {max(ages):.2f} s old at most, median {statistics.median(ages):.2f} s, in {len(ages)} looks")
        record_property(f"{what} of a running study: s old at most", max(ages))
        assert looks[-1][column] > looks[0][column]
        assert max(ages) < 2.0
