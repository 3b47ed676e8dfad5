"""A headless Chromium for tests, when the system has one."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

#: Seconds to wait for the browser to do something.
PATIENCE = 30.0


@contextmanager
def headless_browser(profile: Path, *, dark: bool = False) -> Iterator[Any]:
    """A Selenium driver with a fresh profile; skips the test where Chromium or its driver is not installed."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("needs Chromium and chromedriver from the system's packages")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={profile}",
        "--window-size=1400,1000",
        *(["--blink-settings=preferredColorScheme=0"] if dark else []),
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield browser
    finally:
        browser.quit()


def open_page(browser: Any, path: Path) -> None:
    """Open the file and wait until every figure is drawn."""
    browser.get(path.resolve().as_uri())
    browser.execute_script("document.querySelectorAll('figure').forEach(f => f.scrollIntoView())")
    height = browser.execute_script("return document.documentElement.scrollHeight")
    browser.set_window_size(1400, height + 200)
    undrawn = "return document.querySelectorAll('figure:not([data-drawn])').length"
    wait_until(lambda: browser.execute_script(undrawn) == 0, "every figure is drawn")


def wait_until(condition: Callable[[], Any], what: str) -> Any:
    """The first true value of `condition`; the test fails when there is none in time."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    pytest.fail(f"the browser did not come to this: {what}")


def count(browser: Any, selector: str) -> int:
    """Number of elements that `selector` matches."""
    return int(browser.execute_script("return document.querySelectorAll(arguments[0]).length", selector))


@contextmanager
def screen(browser: Any, width: int, height: int = 900) -> Iterator[None]:
    """A screen of `width` times `height` pixels."""
    device = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@contextmanager
def paper_layout(browser: Any) -> Iterator[None]:
    """The layout of the page while it is printed: the browser announces printing, then applies the rules for paper."""
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        yield
    finally:
        browser.execute_script("dispatchEvent(new Event('afterprint'))")
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def errors(browser: Any) -> list[str]:
    """Errors in the console since the last look."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
