"""The documentation site's generator: every public name has a place, every page too, and links lead there.

What needs the site's own packages (the build itself, its links) is checked by `make docs`.
"""

import importlib
import re
import sys

import pytest

from tests.documents import ROOT, text

sys.path.append(str(ROOT / "docs"))  # last, so that it hides nothing
import reference  # noqa: E402  # ty: ignore
import sources  # noqa: E402  # ty: ignore

ENTRANCES = "jaxzero root options policies search games models nets environments viz compat.mctx play.gtp".split()


@pytest.mark.parametrize("name", ENTRANCES)
def test_the_names_are_those_that_python_sees(name):
    """The generator reads the source; here it is compared with what an import gives."""
    dotted = name if name == "jaxzero" else f"jaxzero.{name}"
    module = importlib.import_module(dotted)
    assert sorted(module.__all__) == sorted(reference.modules()[dotted].names)
    for public in module.__all__:
        owner, original = reference.home(dotted, public)
        assert owner.startswith("jaxzero."), public
        if original in reference.modules()[owner].docs and "mctx_records" not in owner:  # these are mctx's, where it is
            assert getattr(importlib.import_module(owner), original) is getattr(module, public)


def test_every_list_of_public_names_is_read():
    """Found another way: the lists in the text of every file."""
    for file in sorted((ROOT / "jaxzero").rglob("*.py")):
        listed = re.search(r"^__all__ = \[(.*?)\]", file.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        if listed and file.name != "__main__.py":
            parts = file.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            wanted = {f"{name}.{public}" for public in re.findall(r'"(\w+)"', listed[1])}
            assert wanted and wanted <= reference.anchors().keys()


def test_every_public_name_has_a_place_on_its_page():
    """Where it is defined its docstring is shown; elsewhere there is a link, and a place to link to."""
    for dotted, page in reference.anchors().items():
        module, _, name = dotted.rpartition(".")
        written = reference.text(reference.modules()[module])
        assert page == reference.page(module)
        shown = reference.home(module, name) == (module, name) and name not in reference.modules()[module].values
        wanted = rf"members: \[.*'{name}'" if shown else rf'<a id="{re.escape(dotted)}"></a>'
        assert re.search(wanted, written), dotted


def test_what_is_listed_leads_to_where_it_is_defined():
    known = reference.modules()
    for module in reference.documented():
        for dotted in re.findall(r"\]\[(jaxzero[\w.]*)\]", reference.text(module)):
            owner, _, name = dotted.rpartition(".")
            assert dotted in known or name in known[owner].docs and dotted in reference.anchors(), (module.name, dotted)


def test_every_part_of_readme_is_on_one_page():
    placed = [heading for headings in sources.README.values() for heading in headings]
    assert sorted(placed) == sorted(sources.sections())


def test_every_page_of_the_notebooks_is_on_the_site():
    pages = {f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.md")}
    assert pages <= sources.PAGES.keys() and len(sources.NOTEBOOKS) == 7
    assert all((ROOT / page).exists() for page in sources.PAGES)


def test_links_are_rewritten():
    def rewritten(link, source="notebooks/theory.md", page="explanation/theory.md"):
        return sources.rewritten(f"[it]({link})", source, page)[5:-1]

    assert rewritten("choosing.md#to-play") == "../how_to/choosing.md#to-play"
    assert rewritten("#rules") == "#rules"
    assert rewritten("../jaxzero/types.py") == sources.BLOB + "jaxzero/types.py"
    assert rewritten("../README.md#commands") == "../how_to/commands.md#commands"
    assert rewritten(sources.BLOB + "notebooks/features.md") == "features.md"
    assert rewritten(sources.COLAB + "notebooks/1_a_tree_grows.ipynb") == "../tutorials/1_a_tree_grows.md"
    assert rewritten("notebooks/pictures/browser.png", "README.md", "index.md") == "pictures/browser.png"
    assert rewritten("https://www.python.org") == "https://www.python.org"
    assert "`[a](b.md)`" not in sources.rewritten("```\n[a](b.md)\n```\n", "README.md", "index.md")
    with pytest.raises(FileNotFoundError, match=r"nowhere\.md"):
        rewritten("nowhere.md")


def test_a_list_has_the_blank_line_before_it_that_markdown_wants():
    assert sources.commonmark("Two:\n- a\n- b\n  more\n- c\n") == "Two:\n\n- a\n- b\n  more\n- c\n"
    assert sources.commonmark("Two:\n1. a\n2. b") == "Two:\n\n1. a\n2. b"
    for same in ("Two:\n\n- a\n", "| a |\n- b", "```\nx\n- a\n```\n"):
        assert sources.commonmark(same) == same


def test_no_picture_comes_from_elsewhere():
    badge = "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/x)"
    assert sources.without_badges(badge) == "[Open in Colab](https://colab.research.google.com/x)"
    assert "shields.io" in text("README.md") and "shields.io" not in sources.without_badges(text("README.md"))
