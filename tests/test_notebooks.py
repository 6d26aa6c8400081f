"""The notebooks keep their word: they run from top to bottom, show a picture soon, and come without outputs."""

import os
import re

import nbformat
import pytest

from tests import documents

NOTEBOOKS = sorted(path.name for path in (documents.ROOT / "notebooks").glob("*.ipynb"))
HOME = "https://github.com/jaxzero/jaxzero/blob/main/"
COLAB = "https://colab.research.google.com/github/jaxzero/jaxzero/blob/main/"


def read(name):
    return nbformat.read(documents.ROOT / "notebooks" / name, as_version=4)


def text(notebook):
    return "\n\n".join(cell.source for cell in notebook.cells)


def executed(name, folder):
    """The notebook with its outputs, run in a kernel of its own, in a folder of its own, as on Colab."""
    nbclient = pytest.importorskip("nbclient")
    kernel = dict(timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    environment = os.environ | {"JAXZERO_SMALL": "1", "PYTHONPATH": str(documents.ROOT)}
    notebook = read(name)
    nbclient.NotebookClient(notebook, **kernel).execute(env=environment)
    return notebook


def pictured(cell):
    """Whether what a cell shows is a picture: an image, or a page or frame that has one."""
    shown = [output.data for output in cell.get("outputs", []) if "data" in output]
    return any("image/png" in data or "<svg" in data.get("text/html", "") for data in shown)


def test_there_are_seven():
    assert [name[0] for name in NOTEBOOKS] == list("1234567")


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_form(name):
    notebook = read(name)
    nbformat.validate(notebook)
    assert f"]({COLAB}notebooks/{name})" in notebook.cells[0].source, "the badge opens another notebook, or none"
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code), "outputs are not stripped"
    assert all(len(cell.source.splitlines()) <= 15 for cell in code)
    assert '"google.colab" in sys.modules' in code[0].source and "jax" not in re.findall(
        r"install.* (\w+)==", text(notebook)
    )
    linked = re.findall(rf"(?:{re.escape(HOME)}|{re.escape(COLAB)})([^)#\s]+)", text(notebook))
    assert linked and not [path for path in linked if not (documents.ROOT / path).exists()]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_list_has_it(name):
    assert f"({name})" in documents.text("notebooks/README.md")


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_runs_and_shows_a_picture_within_five_cells(name, tmp_path):
    notebook = executed(name, tmp_path)
    assert any(pictured(cell) for cell in notebook.cells[:5])
    if name.startswith("6"):  # what its text says
        agree = re.findall(
            r"(\d+) of (\d+) games have the same visits",
            "".join(output.text for cell in notebook.cells for output in cell.get("outputs", []) if "text" in output),
        )
        assert len(agree) == 2 and all(same == games for same, games in agree)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    said = [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"]
    assert not [words for words in said if "Warning" in words or "Traceback" in words]
