"""The gallery: short scripts, each with its picture on the page; and, slowly, each of them in the small mode."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from tests import documents

sys.path.append(str(documents.ROOT / "docs"))  # last, so that it hides nothing

import sources  # noqa: E402  # ty: ignore

FOLDER, PAGE = documents.ROOT / "experiments" / "gallery", "experiments/gallery/README.md"
PICTURES = documents.ROOT / "notebooks" / "pictures" / "gallery"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py") if path.name != "layout.py")


def test_the_page_shows_every_script_and_every_picture():
    page = documents.text(PAGE)
    assert re.findall(r"(?m)^\[Code\]\((.*)\)$", page) and not documents.missing_links(PAGE)
    assert sorted(re.findall(r"(?m)^\[Code\]\((.*)\)$", page)) == SCRIPTS
    shown = re.findall(r"!\[[^\]]+\]\(../../notebooks/pictures/gallery/(.*)\.svg\)", page)
    assert sorted(shown) == sorted(path.stem for path in PICTURES.iterdir()) == [name[:-3] for name in SCRIPTS]


def test_the_site_has_the_code_below_its_link():
    page = sources.with_code(documents.text(PAGE), PAGE)
    for name in SCRIPTS:
        code = (FOLDER / name).read_text("utf-8")
        assert f"[Code]({name})\n\n```python\n{code}```\n" in page
    assert sources.with_code("See [Code](a.py).", PAGE) == "See [Code](a.py)."


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_short_and_says_how_it_is_run(name):
    text = (FOLDER / name).read_text("utf-8")
    assert len(text.splitlines()) <= 40
    says = text.split('"""')[1]
    assert f"    python experiments/gallery/{name}\n" in says and re.search(r"(?m)^Expect: .+", says)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_picture_is_small_and_stands_alone(name):
    svg = (PICTURES / name).with_suffix(".svg").read_text("utf-8")
    assert ET.fromstring(svg).tag.endswith("svg") and len(svg.encode()) < 150_000
    assert "<script" not in svg and set(re.findall(r"https?://[\w./]+", svg)) <= {"http://www.w3.org/2000/svg"}


@pytest.mark.slow
def test_every_script_draws_its_picture(tmp_path):
    """In one process, which compiles once what they share."""
    code = "import runpy, sys\nfor script in sys.argv[1:]: runpy.run_path(script, run_name='__main__')"
    small = {"JAXZERO_SMALL": "1", "PYTHONPATH": f"{documents.ROOT}{os.pathsep}{FOLDER}", "JAX_PLATFORMS": "cpu"}
    small["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    command = [sys.executable, "-c", code, *(str(FOLDER / name) for name in SCRIPTS)]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | small, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    for name in SCRIPTS:
        assert ET.parse(tmp_path / name.replace(".py", ".svg")).getroot().tag.endswith("svg")
        assert f"Written to {name[:-3]}.svg" in done.stdout
