"""The documentation site is built from the repository, needs no network, and has no dead ends."""

import importlib.util
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest

ROOT = Path(__file__).parents[1]


class Page(HTMLParser):
    """The ids of a page, what it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.ids.update(attributes[name] for name in ("id", "name") if name in attributes)
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if tag == "link" and attributes.get("rel") not in ("next", "prev", "canonical"):
            self.loads.append(attributes["href"])
        if tag in ("script", "img", "iframe", "source") and "src" in attributes:
            self.loads.append(attributes["src"])


#: Without Ruff, which it starts for each of the 300 signatures of the reference, mkdocstrings prints them in one line.
#: There is next to no garbage in a build, and looking for it takes a seventh of its time.
BUILD = (
    "import gc, sys; gc.disable(); sys.modules.update(black=None, ruff=None); from mkdocs.__main__ import cli; cli()"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    if any(importlib.util.find_spec(name) is None for name in ("mkdocs", "material")):
        pytest.skip("mkdocs-material is not installed (extra docs)")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-W", "ignore", "-c", BUILD, "build", "--strict", "--quiet", "-d", str(folder)]
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    environment = {**os.environ, **nowhere, "NO_MKDOCS_2_WARNING": "1"}
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, env=environment)
    assert process.returncode == 0, process.stdout + process.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """Every page but that of the server for what is not found, whose links are from the top of a server."""
    return {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_fence_is_a_block_of_code(site: Path, pages: dict[Path, Page]) -> None:
    assert pages
    assert [path.name for path in pages if "```" in path.read_text(encoding="utf-8")] == []


def test_every_page_of_the_folder_is_built_and_in_the_navigation(
    site: Path, pages: dict[Path, Page], reference: Any
) -> None:
    docs = ROOT / "docs"
    sources = {str(path.relative_to(docs).with_suffix("")) for path in docs.rglob("*.md")}
    built = {str(path.relative_to(site).with_suffix("")) for path in pages}
    generated = {"index", "study_reference", "benchmarks", "contributing", "changelog"}
    generated |= {name.removesuffix(".md") for name in reference.plugin_reference()}
    assert sources | generated == built
    listed = {
        str((site / urldefrag(link)[0]).relative_to(site))
        for link in pages[site / "index.html"].links
        if "://" not in link
    }
    assert {f"{name}.html" for name in built} <= listed | {"index.html"}


def test_pages_load_nothing_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        assert page.loads, path
        for address in page.loads:
            assert "://" not in address, f"{path.name} loads {address}"
            assert not address.startswith("//"), f"{path.name} loads {address}"
            assert (path.parent / unquote(address.split("?")[0])).exists(), f"{path.name} misses {address}"
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert not re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^)]*", styles)


def test_every_link_within_the_site_leads_somewhere(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for link in page.links:
            if "://" in link or link.startswith("mailto:"):
                continue
            address, anchor = urldefrag(link)
            target = (path.parent / unquote(address)).resolve() if address else path
            if target.is_dir():
                target /= "index.html"
            assert target.exists(), f"{path.name} links to {link}"
            if anchor and target in pages:
                assert unquote(anchor) in pages[target].ids, f"{path.name} links to {link}"


def module(path: Path) -> Any:
    """The Python file at `path`, which is in no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.mark.parametrize("page", ["index.html", "theory/fronts.html"])
def test_pages_that_are_opened_from_the_folder_can_be_searched(site: Path, page: str, tmp_path: Path) -> None:
    browser = module(ROOT / "tests" / "report" / "browser.py")
    with browser.headless_browser(tmp_path) as driver:
        driver.get((site / page).as_uri())
        driver.execute_script("document.querySelector('#__search').click()")
        field = driver.find_element("css selector", "input.md-search__input")
        browser.wait_until(field.is_displayed, "the field of the search is there")
        field.send_keys("hypervolume")
        results_script = (
            "return [...document.querySelectorAll('.md-search-result__item')].map(e => e.textContent).join(' ')"
        )
        browser.wait_until(
            lambda: "Fronts, limits" in driver.execute_script(results_script), "the page on fronts is found"
        )
        assert browser.errors(driver) == []


# -------------------------------------------------------------------------------------------------------- reference


@pytest.fixture(scope="module")
def reference() -> Any:
    """The module that makes the reference pages."""
    return module(ROOT / "docs" / "reference.py")


def without_meaning(page: str) -> list[str]:
    """The rows of tables on a page whose last cell is empty."""
    return [line for line in page.splitlines() if re.match(r"\| `.*\|\s*\|$", line)]


def test_the_reference_of_study_files_has_every_key_with_its_meaning(reference: Any) -> None:
    from designopt.study.sections import schema

    page = reference.study_reference()
    for name in schema.SECTIONS:
        assert f"\n## `{name}`" in page
    assert without_meaning(page) == []
    for section, where in (
        (schema.ParameterSection, "space.NAME"),
        (schema.ObjectiveSection, "objectives.0"),
        (schema.ConstraintSection, "constraints.0"),
        (schema.StageSection, "stages.0"),
        (schema.StartFromSection, "stages.0.start_from"),
        (schema.HypervolumeSection, "budget.hypervolume"),
        (schema.ExecutionSection, "execution"),
        (schema.ClusterSection, "execution.cluster"),
        (schema.RetriesSection, "execution.retries"),
        (schema.FailureSection, "execution.on_failure"),
        (schema.ReportSection, "report"),
        (schema.ValidateSection, "report.validate"),
    ):
        for key in section.__annotations__:
            assert f"| `{where}.{key}`" in page


def test_meanings_that_the_schema_lacks_are_of_keys_that_exist(reference: Any) -> None:
    page = reference.study_reference()
    assert [key for key in reference._MEANINGS if f"| `{key}`" not in page] == []


def test_the_reference_of_plugins_has_every_one_with_its_settings(reference: Any) -> None:
    from designopt.plugin import GROUPS, find, installed_plugins

    pages = reference.plugin_reference()
    contents = pages.pop("plugin_reference.md")
    text = "".join(pages.values())
    for kind in GROUPS:
        for entry in installed_plugins(kind):
            if entry.distribution == "designopt":
                head = f"\n## `{entry.name}` {{ #{entry.name} }}"
                assert f"[`{entry.name}`](" in contents
                settings = find(kind, entry.name).settings
                sections = text.split(head)[1:]  # kinds may share a name
                assert any(all(f"| `{name}` |" in section for name in settings) for section in sections), entry.name


def test_no_page_of_the_reference_is_too_long_to_read(reference: Any) -> None:
    assert max(map(len, reference.plugin_reference().values())) < 60_000


# ---------------------------------------------------------------------------------------------------------- gallery


def test_the_pictures_of_the_gallery_are_there_and_small() -> None:
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    pictures = re.findall(r"^!\[.+\]\(gallery/(.+?)\)$", text, flags=re.MULTILINE)
    assert set(pictures) == {path.name for path in (ROOT / "docs" / "gallery").iterdir()}
    assert pictures == re.findall(r"^python docs/picture\.py \S+ \".+?\" (\S+)", text, flags=re.MULTILINE)
    for name in pictures:
        content = (ROOT / "docs" / "gallery" / name).read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) < 250_000
