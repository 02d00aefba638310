"""The templates of all pages, with the filters that they use."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from gortho.report.words import chance, number, percent, terms, with_interval

HERE = Path(__file__).parent


def template(name: str, folder: Path = HERE) -> Template:
    """A template in a folder; what it is not given is an error, not a gap in the page."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {f.__name__: f for f in (chance, number, percent, terms)} | {
        "interval": with_interval
    }
    return environment.get_template(name)
