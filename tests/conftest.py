"""What all tests share: Hypothesis gives the same examples in every run and no test is judged by its speed.

With `GORTHO_HYPOTHESIS=explore` (`make explore`) it looks at other examples every day, and at more of them where a
property does not say how many. The seed is told at the end, and a failure prints what makes it again.
"""

import datetime
import os

import pytest
import shapes
import torch
from hypothesis import settings
from jaxtyping import install_import_hook

install_import_hook(shapes.MODULES, "shapes.check")  # before anything imports them
EXPLORE = os.environ.get("GORTHO_HYPOTHESIS") == "explore"

settings.register_profile("gortho", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("explore", deadline=None, max_examples=250, print_blob=True)
settings.load_profile("explore" if EXPLORE else "gortho")
torch.set_num_threads(1)  # tensors are small here: threads that wait for each other only cost time


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Explore with the date as seed, unless another one is given."""
    if EXPLORE and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = datetime.date.today().strftime("%Y%m%d")


def pytest_terminal_summary(terminalreporter, config):
    if EXPLORE:
        again = f"GORTHO_HYPOTHESIS=explore pytest --hypothesis-seed={config.option.hypothesis_seed}"
        terminalreporter.write_line(f"These examples again: {again}")
