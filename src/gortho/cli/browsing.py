"""The command `gortho app`."""

from __future__ import annotations

from contextlib import suppress

import click

from gortho.cli.base import main


@main.command()
@click.option(
    "--port", type=click.IntRange(1, 65535), metavar="PORT", help="Port (default: 8765, or any free one)."
)
@click.option("--no-browser", is_flag=True, help="Print the address without opening a browser.")
def app(port: int | None, no_browser: bool) -> None:
    """Open a page in the browser: upload a file, choose columns, search, view the report.

    The page is served on this machine only, at 127.0.0.1, and a token in the address keeps others out. Nothing is sent
    anywhere. Files may have up to 500 MB. Uploads and results are deleted when you stop the command with Ctrl-C:
    download what you want to keep.

    \b
    Example:
      gortho app --port 9000 --no-browser
    """
    try:
        from gortho.app.serve import serve
    except ImportError as error:
        raise ImportError(f"gortho app needs {error.name}: pip install 'gortho[app]'") from None

    def told(address: str) -> None:
        click.echo(f"gortho app is at {address}\nPress Ctrl-C to stop it.")

    with suppress(KeyboardInterrupt):
        serve(port, not no_browser, told)
    click.echo("Stopped; uploads and results are deleted.")
