"""The notebooks of docs/notebooks run from top to bottom, in an empty folder."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
LONG = ("chemist", "engineer", "scikit-learn", "student")


@pytest.mark.skipif(find_spec("nbclient") is None, reason='nbclient is not installed; pip install "asapool[dev]"')
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.slow] * (path.stem in LONG)) for path in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_it_runs(path, tmp_path, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    root = str(path.parents[2])
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")  # for `!asapool`
    monkeypatch.setenv("PYTHONPATH", root)
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=200, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    shown = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert shown
    text = "".join(output.get("text", "") for output in shown)
    assert "Traceback" not in text
    assert ("asapool: " in text) == (path.stem == "engineer"), text  # which shows errors
    if os.environ.get("ASAPOOL_KEEP_NOTEBOOKS"):  # write the outputs that the site and the repository show
        for cell in book.cells:
            if cell.cell_type == "code":
                cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        nbformat.write(book, path)
