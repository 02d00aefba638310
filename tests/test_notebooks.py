"""The notebooks of the docs print what they store: their code is run again, with small searches."""

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

import gortho

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
SMALL = gortho.Settings(starts=8, generations=2, refits=4)


def cells(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in content["cells"] if cell["cell_type"] == "code"]


def words(text):
    """A text without its numbers, which depend on the size of the search."""
    return re.sub(r"\d[\d.e+-]*", "0", text).split()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.pages
def test_notebooks_run_as_stored(path, monkeypatch, tmp_path):
    search = gortho.discover
    monkeypatch.setattr(gortho, "discover", lambda *a, **k: search(*a, **{"settings": SMALL} | k))
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for cell in cells(path):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), path.name, "exec"), names)
        stored = [out["text"] for out in cell["outputs"] if out["output_type"] == "stream"]
        assert words(printed.getvalue()) == words("".join("".join(text) for text in stored))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_with_what_they_showed(path):
    assert any(cell["outputs"] for cell in cells(path))
    for cell in cells(path):
        assert cell["execution_count"] is not None
        assert not any(
            out["output_type"] == "error" or out.get("name") == "stderr" for out in cell["outputs"]
        )


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 2
