"""What the site needs and no package gives: formulas as MathML, help texts of commands, pages of results and tests."""

import importlib
import inspect
import pkgutil
import pydoc
import re
from pathlib import Path

import click
from docutils import nodes
from docutils.parsers.rst import Directive
from latex2mathml.converter import convert
from sphinx.util.nodes import make_refnode

HERE = Path(__file__).parent
RESULTS, TESTS = HERE.parent / "results", HERE.parent / "tests"
HELP_WIDTH = 76  # characters that fit beside both sidebars
#: What functions hand back, and nobody makes: how they are made is left out.
HANDED_BACK = ("Discovery", "Kept", "LevelForm", "Scan", "Verdict")
COLON = "\u2236"  # a sign that no docstring has
API = {  # pages of the reference: title, and modules or packages
    "discovery": ("Discovery", ["discovery", "formulas", "scanning", "level", "kept"]),
    "forms": (
        "Forms, groups, representations",
        [
            "immutable",
            "forms",
            "groups",
            "reps",
            "skew",
            "symplectic",
            "symmetry",
            "stabiliser",
            "kinds",
            "notation",
            "pairings",
            "volume",
        ],
    ),
    "networks": ("Networks and training", ["nn", "objectives", "training", "testing"]),
    "estimators": ("scikit-learn estimators", ["estimators", "estimating", "scaling"]),
    "data": (
        "Files, saved runs, report, app",
        ["samples", "surveyed", "runs", "certificate", "stored", "report", "app"],
    ),
    "tasks": ("Tasks, baselines, experiments", ["studies.tasks", "studies.baselines", "studies.experiments"]),
    "toptag": ("Top tagging", ["studies.toptag"]),
}
TEST = re.compile(r"\b(test_\w+)\b(?!\.py)")


def inline(translator, node):
    """An inline formula."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(translator, node):
    """A displayed formula, in a box of its own that scrolls where the screen is narrow."""
    translator.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


class Commands(Directive):
    """The help text of a command and of all below it, each in a section of its own, as the commands print them."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        from gortho.cli import main

        name, *words = self.arguments[0].split()
        command, context = (
            main,
            click.Context(main, info_name=name, max_content_width=HELP_WIDTH, terminal_width=HELP_WIDTH),
        )
        for word in words:
            command = command.get_command(context, word)
            context = click.Context(command, info_name=word, parent=context)
        return list(self.sections(command, context))

    def sections(self, command, context):
        name, text = context.command_path, command.get_help(context)
        section = nodes.section(ids=[nodes.make_id(name)], names=[name])
        section += [nodes.title(name, name), nodes.literal_block(text, text, language="text")]
        yield section
        for word in command.list_commands(context) if isinstance(command, click.Group) else ():
            below = command.get_command(context, word)
            yield from self.sections(below, click.Context(below, info_name=word, parent=context))


def write(folder, pages):
    """Make a folder of pages, leaving alone what is the same: unchanged pages are not built again."""
    folder.mkdir(exist_ok=True)
    for old in set(folder.glob("*.md")) - {folder / name for name in pages}:
        old.unlink()
    for name, text in pages.items():
        target = folder / name
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


def modules(name):
    """A module, or a package and what is in it."""
    module = importlib.import_module(f"gortho.{name}")
    inside = pkgutil.walk_packages(getattr(module, "__path__", []), f"gortho.{name}.")
    return [f"gortho.{name}", *(info.name for info in inside)]


def public(names):
    """What `import gortho` offers of these modules: a table, then each by itself; modules by their names alone."""
    import gortho
    from gortho.immutable import Immutable

    rows, sections = [], []
    for name in sorted(
        gortho.__all__, key=lambda name: inspect.isclass(getattr(gortho, name))
    ):  # functions first
        value = getattr(gortho, name)
        home = getattr(value, "__module__", value.__name__).removeprefix("gortho.").split(".")[0]
        if home not in names:
            continue
        first = " ".join(value.__doc__.split("\n\n")[0].split()).replace("|", "\\|")
        if inspect.ismodule(value):
            rows.append(f"| {{py:mod}}`gortho.{name}` | {as_markdown(first)} |")
            continue
        rows.append(f"| {{py:obj}}`{name} <gortho.{name}>` | {as_markdown(first)} |")
        kind = "autoclass" if inspect.isclass(value) else "autofunction"
        made = "()" if name in HANDED_BACK else ""
        members = "   :members:\n" if inspect.isclass(value) else ""
        if inspect.isclass(value) and issubclass(value, Immutable):
            members += "   :inherited-members:\n"
        sections.append(f"## {name}\n\n```{{eval-rst}}\n.. {kind}:: gortho.{name}{made}\n{members}```\n")
    return ["| name | what it is |\n| --- | --- |", *rows, "", *sections] if rows else []


def elsewhere(module):
    """The option of automodule that leaves out what the API documents by its public name."""
    import gortho

    names = [name for name in gortho.__all__ if getattr(getattr(gortho, name), "__module__", "") == module]
    return f"   :exclude-members: {', '.join(names)}\n" if names else ""


def as_markdown(text):
    """Literals and names of a docstring as literals."""
    return re.sub(r"``?([^`]+)``?", r"`\1`", text)


def write_pages(app):
    """Pages of the reference; one for every table in results/; one for every file with tests that we name."""
    automodule = (
        "## {0}\n\n```{{eval-rst}}\n.. automodule:: {0}\n   :members:\n   :ignore-module-all:\n{1}```\n"
    )
    reference, inside = {}, {}
    for page, (title, names) in API.items():
        offered = public(names)
        sections = [automodule.format(m, elsewhere(m)) for name in names for m in modules(name)]
        below = (
            f"All modules of this part, with their constants: [{title}, by module](../modules/{page}.md).\n"
        )
        if offered:
            reference[f"{page}.md"] = "\n".join([f"# {title}\n", *offered, below])
        inside[f"{page}.md"] = "\n".join([f"# {title}, by module\n", *sections])
    write(HERE / "api", reference)
    write(HERE / "modules", inside)

    include = "```{{include}} ../../results/{}\n:relative-images:\n```\n"
    write(HERE / "measured", {path.name: include.format(path.name) for path in RESULTS.glob("*.md")})

    named = {name for page in HERE.glob("*.md") for name in TEST.findall(page.read_text(encoding="utf-8"))}
    pages = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        defined = re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), flags=re.M)
        place = path.relative_to(TESTS.parent).as_posix()
        sections = [
            f"## {name}\n\n```{{literalinclude}} ../../{place}\n:pyobject: {name}\n```\n"
            for name in defined
            if name in named
        ]
        if sections:
            pages[f"{path.stem}.md"] = "\n".join(
                [
                    "---\norphan: true\n---\n",
                    f"# {place}\n",
                    "The tests of this file that the pages name.\n",
                    *sections,
                ]
            )
    write(HERE / "tests", pages)


def link_tests(app, doctree, docname):
    """The name of a test leads to its code."""
    for node in list(doctree.findall(nodes.literal)):
        match = TEST.fullmatch(node.astext().split("::")[-1])
        page = match and app.env.tests.get(match[1])
        if page and not isinstance(node.parent, nodes.reference):
            target = nodes.make_id(match[1])
            node.replace_self(make_refnode(app.builder, docname, page, target, [node.deepcopy()]))


def note_tests(app, env, *_):
    """Where each test is shown."""
    env.tests = {
        name: f"tests/{page.stem}"
        for page in (HERE / "tests").glob("*.md")
        for name in re.findall(r"^## (test_\w+)", page.read_text(encoding="utf-8"), flags=re.M)
    }


def plain_signs(app, what, name, obj, options, lines):
    """Signs of our docstrings that others would read as markup.

    |x| is a size, not a substitution of reStructuredText, and a colon in the line of a property ends no type.
    """
    for i, line in enumerate(lines):
        if not line.lstrip().startswith(">>>"):
            outside = re.split(r"(`+[^`]*`+)", line)
            lines[i] = "".join(part if part.startswith("`") else part.replace("|", r"\|") for part in outside)
    if lines and what in ("property", "attribute", "data"):
        lines[0] = lines[0].replace(":", COLON)


def put_colons_back(app, what, name, obj, options, lines):
    """After napoleon."""
    lines[:] = [line.replace(COLON, ":") for line in lines]


def shown(name, domain):
    """Where an object is documented: by its public name, where it has one."""
    parts = name.split(".")
    for k in range(1, len(parts)):
        if (short := ".".join(["gortho", *parts[k:]])) in domain.objects:
            return short
    return name


def nearest(app, env, node, contnode):
    """Names in docstrings lead to where the object is documented, whatever it is called by.

    Other projects' names stay plain text, and so do ours that have no page. A full name, gortho.…, of something that
    is not there is left to fail: a broken link is an error.
    """
    if node.get("refdomain") != "py":
        return None
    target, domain = node.get("reftarget", ""), env.domains["py"]
    if target.startswith("gortho."):
        try:
            found = pydoc.locate(target)
        except pydoc.ErrorDuringImport:
            found = None
        if found is None:
            return None
        name = f"{getattr(found, '__module__', '')}.{getattr(found, '__qualname__', '')}"
        name = shown(name, domain)
    elif f"gortho.{target}" in domain.objects:
        name = f"gortho.{target}"
    else:
        ends = [name for name in domain.objects if name.endswith("." + target)]
        name = ends[0] if len(ends) == 1 else ""
    if name not in domain.objects:
        return contnode
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, contnode)


def only_ours(app, what, name, obj, skip, options):
    """Leave out methods that scikit-learn puts into its estimators, and fields that Python describes."""
    alien = str(getattr(obj, "__module__", "")).startswith("sklearn")
    return True if alien or str(obj.__doc__).startswith("Alias for field") else None


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.add_directive("commands", Commands)
    app.connect("builder-inited", write_pages)
    app.connect("env-before-read-docs", note_tests)
    app.connect("doctree-resolved", link_tests)
    app.connect("autodoc-process-docstring", plain_signs, priority=400)
    app.connect("autodoc-process-docstring", put_colons_back, priority=900)
    app.connect("autodoc-skip-member", only_ours)
    app.connect("missing-reference", nearest)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
