"""`python -m gortho`, and where the command `gortho` begins: Ctrl-C gives one line even while it is being imported."""

import os
import signal
import sys
from types import FrameType


def sigterm_is_as_ctrl_c() -> None:
    """From now on, for this process: those that it starts end by SIGTERM as others do."""
    here = os.getpid()

    def handle(number: int, frame: FrameType | None) -> None:
        if os.getpid() == here:
            raise KeyboardInterrupt
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, handle)


def main() -> None:
    """Run the command line."""
    sigterm_is_as_ctrl_c()
    try:
        from gortho.cli import main as commands

        commands()
    except KeyboardInterrupt:
        print("Interrupted before there was a result.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
