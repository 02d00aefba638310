"""The command `gortho app`."""

from __future__ import annotations

from contextlib import suppress

import click

from gortho.cli.base import main
from gortho.progress import interrupted_by_sigterm


@main.command()
@click.option(
    "--port", type=click.IntRange(1, 65535), metavar="PORT", help="Port; 8765, or any that is free."
)
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
def app(port: int | None, no_browser: bool) -> None:
    """Open a page in the browser: drop a file, choose columns, search, look at the report.

    The page is served on this machine only, at 127.0.0.1, and the address has a token that keeps others out. Nothing is
    sent anywhere, and files up to 500 MB are taken. What was uploaded and found is removed at the end, Ctrl-C: download
    what you want to keep.

    \b
    Example:
      gortho app --port 9000 --no-browser
    """
    try:
        from gortho.app.serve import serve
    except ImportError as error:
        raise ImportError(f"gortho app needs {error.name}: pip install 'gortho[app]'") from None

    def told(address: str) -> None:
        click.echo(f"gortho app is at {address}\nCtrl-C ends it.")

    with suppress(KeyboardInterrupt), interrupted_by_sigterm():
        serve(port, not no_browser, told)
    click.echo("Ended; what was uploaded and found is removed.")
