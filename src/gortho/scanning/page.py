"""The table as a page: sortable, searchable, in the style of the report."""

from __future__ import annotations

from gortho.scanning.table import Scan


def page(found: Scan) -> str:
    """Set the rows into the template."""
    try:
        from gortho.report.templates import template
    except ImportError:
        raise ImportError("the page of a scan needs jinja2: pip install 'gortho[report]'") from None
    return template("scan.html").render(found=found)
