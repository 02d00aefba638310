"""Every example of the gallery runs as a script, as a reader would run it, and its own assertions hold.

The scripts know the truth behind their data and end by asserting it: verdict, distance to the true form, c, the cell.
"""

import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(FOLDER.glob("plot_*.py"))
#: Packages that only some examples need; an example is left out where its package is missing.
OPTIONAL = {"ase", "matplotlib", "ppigrf"}


def trees(path):
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def missing(path):
    names = {
        name.split(".")[0]
        for node in trees(path)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    }
    return sorted(name for name in names & OPTIONAL if find_spec(name) is None)


def test_the_gallery_is_whole():
    assert len(EXAMPLES) == 17


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_states_and_checks_its_claim(path):
    nodes = list(trees(path))
    assert sum(isinstance(node, ast.Assert) for node in nodes) >= 2
    text = ast.get_docstring(next(node for node in nodes if isinstance(node, ast.Module)))
    title, underline, *_ = text.split("\n")
    assert underline == "=" * len(title)
    words = " ".join(text.split())
    assert "*Told" in words and "*Not told" in words


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path, tmp_path):
    lacks = missing(path)
    if lacks:
        pytest.skip(f"needs {', '.join(lacks)}: pip install 'gortho[examples]'")
    alone = {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    done = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env={**os.environ, **alone},
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warning" not in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())  # examples leave nothing behind
