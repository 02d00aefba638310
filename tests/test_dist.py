"""The wheel and the source archive, each installed outside the tree and used there; `make dist` builds and runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("GORTHO_DIST" not in os.environ, reason="make dist builds what is tested here"),
]

USE = """
import pathlib, sys
import numpy as np
import gortho
home = pathlib.Path(sys.argv[1]).resolve()
assert home in pathlib.Path(gortho.__file__).resolve().parents, gortho.__file__
x = np.random.default_rng(0).normal(size=(300, 3))
found = gortho.discover(x, np.exp(-(x**2).sum(1)), settings=gortho.Settings(starts=4, generations=1, refits=2))
assert str(found.symmetry) == "O(3)", found
found.to_html("report.html")
assert "<html" in pathlib.Path("report.html").read_text()
assert (home / "gortho" / "py.typed").exists()
"""


@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_installed_elsewhere_it_works(kind, tmp_path):
    (file,) = Path(os.environ["GORTHO_DIST"]).glob(kind)
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    elsewhere.mkdir()
    install = ["-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", str(home)]
    subprocess.run([sys.executable, *install, str(file.resolve())], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PYTHONPATH"] = str(home)
    for command in (["-m", "gortho", "--version"], ["-c", USE, str(home)]):
        done = subprocess.run(
            [sys.executable, *command], env=environment, cwd=elsewhere, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
