"""`python -m gortho`, and where the command `gortho` begins: Ctrl-C gives one line even while it is being imported."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from gortho.cli import main as commands

        commands()
    except KeyboardInterrupt:
        print("Interrupted before there was a result.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
