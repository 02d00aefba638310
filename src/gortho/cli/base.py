"""The group of all commands: exit codes, and one-sentence errors for bad input."""

from __future__ import annotations

import re
import sys
import warnings
from typing import Any

import click

from gortho import __version__
from gortho.samples.errors import respelled

EXIT_CODES = {"FOUND": 0, "NONE": 3, "UNDERDETERMINED": 4}
BAD_INPUT, INTERRUPTED = 2, 130
EXITS = (
    "Exit codes: 0 FOUND or success, 1 failed check, 2 bad input, 3 NONE, 4 UNDERDETERMINED, 130 interrupted by "
    "Ctrl-C before there was a result."
)


def as_options(message: str) -> str:
    """A message with the names of arguments as the command line spells them.

    >>> as_options("say which is the target by y=; points=2 and output='vector'; a larger max_samples")
    'say which is the target by --y; --points 2 and --output vector; a larger --max-samples'
    >>> as_options("with max_samples=3000 or dropna=True")
    'with --max-samples 3000 or --dropna'
    """

    def spelled(name: str, value: str) -> str:
        word = value if re.fullmatch(r"\w*", value) else repr(value)
        return f"--{name.replace('_', '-')} {word}"

    message = re.sub(r"^(look_for|axial|spaces) = ", lambda match: spelled(match[1], ""), message)
    message = respelled(message, spelled)
    return re.sub(r"(--[\w-]+)  ?(?=[ ;,:.)]|$)", r"\1", message)


class Commands(click.Group):
    """A group of commands that answer bad input with a sentence and exit code 2, not with a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a terminal that lacks a character shows "?"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of libraries; the commands print what matters
                return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except KeyboardInterrupt:
            click.echo("Interrupted before there was a result.", err=True)
            ctx.exit(INTERRUPTED)
        except (ValueError, OSError, ImportError, MemoryError) as error:
            click.echo(f"Error: {as_options(str(error)) or type(error).__name__}", err=True)
            ctx.exit(BAD_INPUT)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXITS,
)
@click.version_option(__version__, prog_name="gortho")
def main() -> None:
    """Find the quadratic form behind vector data, and predict with it.

    \b
    Examples:
      gortho demo
      gortho app
      gortho discover data.npz --output vector --report out.html --save run
      gortho predict run new.csv --out predictions.csv
      gortho check run new.csv
      gortho reproduce --quick
    """
