"""README and docs tell the truth: their commands and their Python are run, their names exist, their site is whole.

Blocks of a page are run one after another, in a directory of their own, with common names. Three comments steer this:

    <!-- not run: reason -->    the next block is only checked: Python compiles, commands and their options exist
    <!-- run first … -->        Python that a reader need not see, run before the next block
    <!-- file: NAME -->         the next block is a file that a later command uses

Text that follows a block is its output. Searches are small here, and the same search is made only once, so numbers
that depend on a search may differ from those on the page.
"""

import ast
import contextlib
import copy
import importlib
import inspect
import io
import os
import pydoc
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

import gortho
from gortho.cli import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {page.relative_to(ROOT).as_posix(): page for page in (ROOT / "README.md", *sorted(DOCS.glob("*.md")))}
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>(?:(?!-->).)*?)\s*-->\n)?"
    r"^```(?P<kind>python|sh)\n(?P<code>.*?)^```\n"
    r"(?:\n```text\n(?P<output>.*?)^```\n)?",
    re.M | re.S,
)
SMALL = gortho.Settings(starts=8, generations=2, refits=4)


def blocks(page):
    return [match.groupdict(default="") for match in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def commands(code):
    """The commands of a block of shell, as words."""
    lines = code.replace("\\\n", " ").splitlines()
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


# Checking without running


def check_options(words):
    """A command that exists, with options that exist."""
    tool, *rest = words
    if tool == "gortho":
        command = main
        while isinstance(command, click.Group):
            command = command.get_command(click.Context(command), rest.pop(0))
        command.make_context(command.name, rest)
    elif tool == "make":
        assert set(rest) <= set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M))
    elif tool == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        named = re.findall(r"\[([\w,]+)\]", " ".join(rest))
        assert rest[0] == "install" and {extra for group in named for extra in group.split(",")} <= set(
            extras
        )
    elif tool == "torchrun":
        from torch.distributed.run import get_args_parser

        get_args_parser().parse_args(rest)
    elif tool == "git":
        assert rest[0] == "clone"
    else:
        pytest.fail(f"{tool}: the test does not know how to run or check it")


# Running


@pytest.fixture(scope="module")
def searches():
    return {}


@pytest.fixture
def small_search(monkeypatch, searches):
    real = gortho.discover

    def discover(*args, **options):
        given = inspect.signature(real).bind(*args, **options)
        given.apply_defaults()
        given = given.arguments | {"settings": SMALL, "watch": None}
        X, y = (np.asarray(given.pop(name)) for name in "Xy")
        names = given["names"] or getattr(args[0], "columns", ())
        given["names"] = tuple(names.split(",") if isinstance(names, str) else names)
        key = X.tobytes(), y.tobytes(), repr(given)
        if key not in searches:
            searches[key] = real(X, y, **given)
        return copy.deepcopy(searches[key])

    monkeypatch.setattr(gortho, "discover", discover)
    monkeypatch.setattr(importlib.import_module("gortho.estimating"), "discover", discover)


def run_command(words):
    if words[0] in ("make", "pip", "git"):  # they set up what the tests themselves run in
        check_options(words)
    elif words[0] == "gortho":
        result = CliRunner().invoke(main, words[1:])
        assert result.exit_code == 0, f"{shlex.join(words)}: {result.output}"
    else:
        check_options(words)
        launcher = [sys.executable, "-m", "torch.distributed.run", *words[1:]]
        done = subprocess.run(
            launcher, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, timeout=300
        )
        assert done.returncode == 0, done.stderr.decode()[-2000:]


def run_python(code, names, page):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, page, "exec"), names)
    return printed.getvalue()


def same_output(printed, shown, searched):
    """Whether a block printed what the page shows; after a search its numbers may differ."""
    if re.match(r"FOUND:|NONE:|UNDERDETERMINED:", shown):
        printed, shown = (text.split(" (")[0] for text in (printed, shown))
    if searched:
        printed, shown = (re.sub(r"\d[\d.e%\s]*", "0 ", text) for text in (printed, shown))
    return printed.split() == shown.split()


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(PAGES[page])])
@pytest.mark.filterwarnings("ignore")
@pytest.mark.pages
def test_blocks_run(page, tmp_path, monkeypatch, small_search):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for block in blocks(PAGES[page]):
        mark, _, hidden = block["mark"].partition("\n")
        if mark == "run first":
            run_python(hidden, names, page)
        if block["kind"] == "sh":
            for words in commands(block["code"]):
                (check_options if mark.startswith("not run:") else run_command)(words)
        elif mark.startswith("file:"):
            Path(mark.removeprefix("file:").strip()).write_text(block["code"], encoding="utf-8")
        elif mark.startswith("not run:"):
            compile(block["code"], page, "exec")
        else:
            printed = run_python(block["code"], names, page)
            if block["output"]:
                assert same_output(printed, block["output"], "discover(" in block["code"]), printed


def test_marks_are_known():
    for page in PAGES.values():
        for block in blocks(page):
            assert re.match(
                r"(not run: \w|file: \w|run first$|$)", block["mark"].splitlines()[0] if block["mark"] else ""
            )


# Names


@pytest.mark.parametrize("page", PAGES)
def test_named_tests_and_code_exist(page):
    text = PAGES[page].read_text(encoding="utf-8")
    files = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in ROOT.glob("tests/**/*.py")
    }
    for file, test in re.findall(r"(tests/[\w/]+\.py)::(test_\w+)", text):
        assert f"def {test}(" in files[file], f"{file} has no {test}"
    defined = " ".join(files.values())
    for test in re.findall(r"`(test_\w+)`", text):
        assert test in ("test_errata",) or f"def {test}(" in defined, f"there is no {test}"
    for name in re.findall(r"\{py:obj\}`(?:[^`<]*<)?(gortho[\w.]+)", text):
        assert pydoc.locate(name) is not None, f"there is no {name}"


SRC = ROOT / "src" / "gortho"


def rows_of_modules(title="## The modules"):
    """The rows of a table of modules: the names in its first column, and all names of the others."""
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    table = re.search(r"(?:^\|.*\n)+", page.split(title)[1], re.M)[0]
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", table, re.M)
    return [(re.findall(r"`(\w+)`", first), set(re.findall(r"`(\w+)`", rest))) for first, rest in rows]


def modules_of(folder):
    return {path.stem for path in folder.iterdir() if path.name[0] != "_" and path.suffix != ".typed"}


def test_the_architecture_names_every_module():
    rows, studies = rows_of_modules(), rows_of_modules("Inside `studies`")
    assert {name for first, _ in rows for name in first} == modules_of(SRC)
    assert {name for first, _ in studies for name in first} == modules_of(SRC / "studies")
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    inside = {name: rest for first, rest in rows + studies for name in first}
    inside["discovery"] = set(re.findall(r"`(\w+)`", page.split("Inside `discovery`")[1].split("Inside ")[0]))
    packages = {path.parent.name for path in SRC.glob("*/__init__.py")} - {"studies"}
    inside["wider"] = set(re.findall(r"`(\w+)`", re.search(r"^.*`wider`, a package.*$", page, re.M)[0]))
    for package in [*packages, "discovery/wider", "studies/toptag"]:
        missing = {path.stem for path in (SRC / package).glob("[!_]*.py")} - inside[Path(package).name]
        assert not missing, f"{package}: {missing}"


def imported(nodes):
    """The modules of ours that statements import, by their parts: ["samples", "values"]."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gortho":
            _, *parts = node.module.split(".")
            yield from ([*parts, alias.name] for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1:] for alias in node.names if alias.name.startswith("gortho."))


@pytest.mark.parametrize("package", ["", "studies"])
def test_modules_import_from_rows_above_alone(package):
    rows = rows_of_modules(f"Inside `{package}`" if package else "## The modules")
    place = {name: row for row, (first, _) in enumerate(rows) for name in first}
    for path in (SRC / package).rglob("[!_]*.py"):
        here = path.relative_to(SRC / package).parts[0].removesuffix(".py")
        for parts in imported(ast.parse(path.read_text(encoding="utf-8")).body):
            if package:
                parts = parts[1:] if parts[0] == package else []
            if parts:
                assert place.get(parts[0], 0) <= place[here], f"{path} imports {parts[0]}"


def test_nothing_imports_studies_but_commands_that_run_them():
    for path in SRC.rglob("*.py"):
        home, *rest = path.relative_to(SRC).parts
        tree = ast.parse(path.read_text(encoding="utf-8"))
        runs = [home, *rest] == ["cli", "measuring.py"]  # commands import them when they are run
        nodes = tree.body if runs else ast.walk(tree)
        if home != "studies":
            assert not [parts for parts in imported(nodes) if parts[0] == "studies"], path


def test_no_module_is_long():
    for path in SRC.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 350, path
        assert ast.get_docstring(ast.parse(text)), path


def test_one_version():
    version = gortho.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version = {{{version}}}" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)[0] == version


def test_tolerances_have_the_values_that_the_page_says():
    rows = re.findall(
        r"^\| \{py:obj\}`(\S+)` \| (\S+) \|", (DOCS / "numerics.md").read_text(encoding="utf-8"), re.M
    )
    assert len(rows) > 10
    for name, value in rows:
        assert pydoc.locate(name) == float(value), name


def messages():
    """Every text in the source, with … where values are set in."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
            elif isinstance(node, ast.JoinedStr):
                yield "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)


def test_messages_are_quoted_as_they_are_written():
    rows = re.findall(r"^\| `(.+?)` \|", (DOCS / "troubleshooting.md").read_text(encoding="utf-8"), re.M)
    texts = "\n".join(messages())
    assert len(rows) > 30
    for quoted in rows:
        assert quoted in texts, quoted


def test_every_equation_of_the_paper_is_listed():
    rows = re.findall(r"^\| ([^|]+) \|", (DOCS / "equations.md").read_text(encoding="utf-8"), re.M)
    assert {int(number) for row in rows for number in re.findall(r"\((\d+)\)", row)} == set(range(1, 21))


def test_every_statement_is_explained_and_cited():
    explained = set(re.findall(r"^## (M\d+)\.", (DOCS / "mathematics.md").read_text(encoding="utf-8"), re.M))
    source = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert set(re.findall(r"\bM\d+\b", source)) <= explained


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_of_the_front_pages(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / page).read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target


# The built site: `make docs` runs these after building

SITE = DOCS / "_build" / "html"
built = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built: make docs")
BROWSER = shutil.which("chromium"), shutil.which("chromedriver")


def site_pages():
    inside = ("_modules", "_static", "_sources", "_downloads")
    return [page for page in SITE.rglob("*.html") if page.relative_to(SITE).parts[0] not in inside]


@built
def test_site_loads_nothing_from_elsewhere():
    for page in site_pages():
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|link|iframe)[^>]*(?:src|href)="(https?://[^"]+)', text)
        assert not loaded, (page, loaded)


@built
@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(not all(BROWSER), reason="chromium or chromedriver is not installed")
@pytest.mark.parametrize("width", [1300, 400])
def test_site_fits_wide_and_narrow_screens(width):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER[0]
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(BROWSER[1]))
    wrong = []
    try:
        screen = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 500}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        for page in site_pages():
            driver.get(page.as_uri())
            wide, broken, raw = driver.execute_script(
                "return [document.documentElement.scrollWidth, [...document.images].filter(i => !i.naturalWidth)"
                ".map(i => i.src), [...document.querySelectorAll('p, li, td')].filter(e => "
                "/\\\\(frac|top|sum|langle)/.test(e.textContent)).length]"
            )
            if wide > width or broken or raw:
                wrong.append((page.relative_to(SITE).as_posix(), wide, broken, raw))
    finally:
        driver.quit()
    assert not wrong
