"""The files of the page: small, classic scripts, and no way for text to become code."""

import re
from importlib import resources
from pathlib import Path

import pytest

ASSETS = Path(str(resources.files("detent.web") / "assets"))
MOST_BYTES = 200 * 1024
OWN = [path for path in sorted(ASSETS.rglob("*.js")) if path.parent.name != "vendor"]
INDEX = (ASSETS / "index.html").read_text()
#: Licences are in the package, and no browser loads them.
LOADED = [path for path in ASSETS.rglob("*") if path.suffix in {".js", ".css", ".html", ".svg"}]


def test_all_that_a_browser_loads_is_small():
    assert sum(path.stat().st_size for path in LOADED) <= MOST_BYTES


def test_the_page_loads_every_script_and_each_once():
    loaded = re.findall(r'<script src="assets/([^"]+)"></script>', INDEX)
    assert sorted(loaded) == sorted(str(path.relative_to(ASSETS)) for path in ASSETS.rglob("*.js"))


def test_nothing_is_loaded_from_elsewhere_or_inline():
    assert re.findall(r'(?:src|href)="(?!assets/)', INDEX) == []
    assert re.findall(r"<script>|<style|\son\w+=|type=\"module\"|\sstyle=", INDEX) == []


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_no_script_makes_markup_or_code_of_text(path):
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|dangerouslySet|\bimport\b"
    )
    assert re.findall(forbidden, path.read_text()) == []


def test_what_others_wrote_is_named_with_its_licence():
    notice = (ASSETS / "vendor" / "NOTICE").read_text()
    for path in (ASSETS / "vendor").iterdir():
        assert path.name == "NOTICE" or path.name in notice
