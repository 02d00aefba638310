"""The table as a page: sortable, searchable, in the style of the report."""

from __future__ import annotations

from pathlib import Path

from gortho.scanning.table import Scan


def page(found: Scan) -> str:
    """Set the rows into the template."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError:
        raise ImportError("the page of a scan needs jinja2: pip install 'gortho[report]'") from None
    from gortho import report
    from gortho.report.words import number, percent

    environment = Environment(
        loader=FileSystemLoader(Path(report.__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "percent": percent}
    return environment.get_template("scan.html").render(found=found)
