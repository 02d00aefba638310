# Everything happens in .venv, made on first use from constraints.txt; nothing else on the machine is touched.
PYTHON ?= python3
BIN := .venv/bin
# One thread in each process: tests run in several, and threads that wait for each other only cost time.
export OMP_NUM_THREADS ?= 1

.PHONY: demo test slow coverage explore style lint docs dist clean
.DEFAULT_GOAL := test

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("gortho needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[report,export,dev]'
	touch $@

demo: .venv/ready  ## find the hidden form of a built-in data set; prints the verdict, writes gortho-demo.html
	$(BIN)/gortho demo

style: .venv/ready
	$(BIN)/ruff check src tests benchmarks docs examples
	$(BIN)/ruff format --check src tests benchmarks docs examples

lint: style
	$(BIN)/mypy

# mypy has one process: it runs beside the tests, and says at the end what it found.
test: style  ## lint, types, doctests and all tests that take seconds
	$(BIN)/mypy > .venv/types.txt 2>&1 & types=$$!; \
	$(BIN)/python -m pytest src tests -m 'not slow and not pages' -n auto --dist worksteal; tests=$$?; \
	wait $$types; types=$$?; cat .venv/types.txt; test $$types -eq 0 && exit $$tests

slow: .venv/ready  ## the tests that `make test` leaves out: whole discoveries, examples, tables; for a night
	$(BIN)/python -m pytest tests -m slow -n auto --dist worksteal

coverage: .venv/ready  ## the same tests without lint, and which lines of src they run; the studies are not counted
	$(BIN)/python -m pytest src tests -m 'not slow' -n auto --dist worksteal --cov=gortho --cov-report=term:skip-covered

explore: .venv/ready  ## the properties on new examples, others every day; for a schedule beside that of `make test`
	GORTHO_HYPOTHESIS=explore $(BIN)/python -m pytest tests -m 'hypothesis and not slow' -n auto --dist worksteal

.venv/docs-ready: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

docs: .venv/docs-ready  ## the site in docs/_build/html, examples, blocks of code and notebooks run once, warnings are errors
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html
	$(BIN)/python -m pytest tests/test_docs.py tests/test_notebooks.py -k 'site or blocks or notebooks' -n auto

dist: .venv/ready  ## wheel and source archive in dist/, each installed elsewhere and tried out there
	rm -rf dist build
	$(BIN)/python -m build --no-isolation
	GORTHO_DIST=dist $(BIN)/python -m pytest tests/test_dist.py -m slow

clean:
	rm -rf .coverage .venv build dist docs/_build docs/api docs/gallery docs/measured docs/tests *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
