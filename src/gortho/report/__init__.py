"""A self-contained HTML page which tells what was found, how sure it is and how well it predicts."""

from gortho.report.data import FormulaRows, Peer, Profile, ReportData, RestartRow, TwinRow

__all__ = ["FormulaRows", "Peer", "Profile", "ReportData", "RestartRow", "TwinRow", "render"]


def render(data: ReportData) -> str:
    """Return the report as one HTML page that loads nothing from anywhere else."""
    try:
        from gortho.report.page import page
    except ImportError as error:
        raise ImportError("the report needs jinja2 and matplotlib: pip install 'gortho[report]'") from error
    return page(data)
