"""The desk in a real browser: a run that grows, a design on a click, another question, a study edited and started."""

import shutil
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from browser import errors, headless_browser, wait_until
from command import designopt as command
from serving import SPRINGS, desk

SLOW = Path(__file__).with_name("slow_car.py")
STUDY = SPRINGS.replace("SAMPLES", "64")


@pytest.fixture
def page(tmp_path):
    """A browser that has opened the desk of a folder with a study and its store."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "springs.yaml").write_text(STUDY)
    assert command(folder, "run", "springs.yaml").returncode == 0
    shutil.copytree(folder / "results" / "springs.study", folder / "results" / "again.study")
    served = desk(folder, run=True, plugin_files=[str(SLOW)])
    with headless_browser(tmp_path / "profile") as browser, served as client:
        browser.get(client.addresses[-1])
        wait_until(lambda: one(browser, "#stores button"), "the store is listed")
        yield browser
        refusal = "status of 4"  # what the server refuses is shown on the page
        assert [error for error in errors(browser) if refusal not in error] == []


def one(browser, selector):
    """The first element, if there is one that is shown."""
    elements = [e for e in browser.find_elements("css selector", selector) if e.is_displayed()]
    return elements[0] if elements else None


def click_at_once(browser, selector):
    """Clicks the first element before the list that contains it is drawn again; whether there is one."""
    return browser.execute_script("const e = document.querySelector(arguments[0]); e?.click(); return !!e", selector)


def text_of(browser, selector):
    """The text of an element, shown or not."""
    return browser.find_element("css selector", selector).text


def in_figures(browser, script):
    """What `script` gives in the page of the figures; None while it is being replaced."""
    return browser.execute_script(
        "const f = document.querySelector('#frames iframe:not(.next)'); if (!f?.contentDocument) return null;"
        f" return (function (window, document) {{ {script} }})(f.contentWindow, f.contentDocument);"
    )


def open_store(browser):
    one(browser, "#stores button").click()
    drawn_figures = "return document.querySelectorAll('figure[data-drawn]').length"
    wait_until(lambda: in_figures(browser, drawn_figures), "a figure is drawn")


CLICK = """
    const figure = document.querySelector('figure[data-drawn]'), plot = figure.querySelector('.plot');
    const trace = plot.data.findIndex(t => t.customdata);
    plot.emit('plotly_click', {points: [{curveNumber: trace, pointIndex: 0}]});
"""


def test_a_click_on_a_point_shows_the_design_which_is_computed_and_compared(page):
    open_store(page)
    in_figures(page, CLICK)
    wait_until(lambda: one(page, "#tables table"), "the design is shown")
    assert "stiffness" in one(page, "#tables").text
    one(page, "#pin").click()
    assert "beside it: design" in one(page, "#tables").text
    one(page, "#compute").click()
    frame = wait_until(lambda: one(page, "#tables iframe:not(.next)"), "the arrays are drawn")
    page.switch_to.frame(frame)
    wait_until(lambda: page.find_elements("css selector", "figure[data-drawn]"), "the first array is drawn")
    assert "the same as recorded" in page.execute_script("return document.querySelector('details pre').textContent")
    page.switch_to.default_content()


def test_another_question_is_answered_at_once_and_nonsense_is_explained(page):
    open_store(page)
    one(page, "#ask").click()
    more = one(page, "#question textarea")
    more.send_keys("objectives.stroke.unit=mm")
    one(page, "#question button[type=submit]").click()
    labels = "return [...document.querySelectorAll('svg text')].map(t => t.textContent).join(' ')"
    wait_until(lambda: "[mm]" in (in_figures(page, labels) or ""), "the axis is in millimetres")
    more.clear()
    more.send_keys("objectives.stroke.unit=kg")
    one(page, "#question button[type=submit]").click()
    wait_until(lambda: "kg" in text_of(page, "#said"), "it is said what is wrong")


def test_a_study_is_edited_with_its_mistakes_shown_and_run(page):
    one(page, "#studies button").click()
    text = wait_until(lambda: one(page, "#text"), "the editor is there")
    wait_until(lambda: "springs" in text.get_attribute("value"), "the text is there")
    edit = "const t = document.getElementById('text'); t.value = arguments[0]; t.dispatchEvent(new Event('input'))"
    page.execute_script(edit, STUDY.replace("damping", "damper"))
    wait_until(lambda: "line 6" in text_of(page, "#findings"), "the mistake is shown with its line")
    page.execute_script(edit, STUDY.replace("64", "200000").replace("quarter_car", "slow_car"))
    wait_until(lambda: "a valid study" in text_of(page, "#findings"), "it is right again")
    one(page, "#save").click()
    wait_until(lambda: one(page, "#start").is_enabled(), "it is saved")
    output = one(page, "#output")
    output.clear()
    output.send_keys("results/more.study")
    one(page, "#start").click()
    wait_until(lambda: click_at_once(page, "#stores .running button"), "the run is listed")
    facts = "return document.querySelector('figure[data-drawn]') ? document.body.textContent.length : 0"
    wait_until(lambda: in_figures(page, facts), "its figures are drawn while it goes on")
    one(page, "#stop").click()
    wait_until(lambda: not page.find_elements("css selector", "#stores .running"), "it has stopped")


def test_results_of_another_study_are_scored_from_the_page(page):
    one(page, "#studies button").click()
    text = wait_until(lambda: one(page, "#text"), "the editor is there")
    wait_until(lambda: "springs" in text.get_attribute("value"), "the text is there")
    limit = "constraints: [{name: travel, of: peak_travel, max: 0.2 m}]\nsolver:"
    edit = "const t = document.getElementById('text'); t.value = arguments[0]; t.dispatchEvent(new Event('input'))"
    page.execute_script(edit, STUDY.replace("solver:", limit))
    one(page, "#save").click()
    wait_until(lambda: one(page, "#start").is_enabled(), "it is saved")
    one(page, "#start").click()
    wait_until(lambda: "limit travel" in text_of(page, "#ways"), "the difference is listed")
    buttons = page.find_elements("css selector", "#ways button")
    assert [button.text for button in buttons] == ["Re-score", "New store beside", "Replace"]
    buttons[0].click()
    scored = "return document.querySelector('#rescored iframe:not(.next)')?.contentDocument?.body.textContent ?? ''"
    wait_until(lambda: "Re-scored with changes: limit travel" in page.execute_script(scored), "the page is shown")


def test_stores_are_compared_in_a_frame(page):
    for tick in page.find_elements("css selector", "#stores input"):
        tick.click()
    one(page, "#compare").click()
    text = "return document.querySelector('#compared iframe:not(.next)')?.contentDocument?.body?.textContent ?? ''"
    wait_until(lambda: "Comparison of" in page.execute_script(text), "the comparison is shown")


def test_the_session_survives_a_reload_and_belongs_to_one_tab(page):
    address = page.current_url
    assert "token" not in address
    page.refresh()
    wait_until(lambda: one(page, "#stores button"), "the store is listed again")
    open_store(page)
    page.switch_to.new_window("tab")
    page.get(address)
    wait_until(lambda: "Access denied. Open the latest address" in text_of(page, "#lost"), "the other tab is refused")
    assert one(page, "#stores button") is None


def test_a_server_on_another_port_receives_nothing_with_which_it_could_enter(page):
    received = []

    class Recording(BaseHTTPRequestHandler):
        def do_GET(self):
            received.append(dict(self.headers))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<p>text</p>")

        def log_message(self, *_):
            pass

    address = page.current_url
    session = page.execute_script("return sessionStorage.getItem('session')")
    with HTTPServer(("127.0.0.1", 0), Recording) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            page.get(f"http://127.0.0.1:{server.server_port}/")
            assert page.execute_script("return sessionStorage.getItem('session')") is None
            fetch = "fetch(arguments[0] + 'state').then(() => arguments[1]('answer'), () => arguments[1]('refused'))"
            answer = page.execute_async_script(fetch, address)
        finally:
            server.shutdown()
            thread.join()
    assert answer == "refused"
    assert received
    assert all("Cookie" not in headers and session not in str(headers) for headers in received)
    errors(page)  # of the refused request
    page.back()
    wait_until(lambda: one(page, "#stores button"), "the desk is there as before")
