"""`serve`: the server on this machine alone, and the browser on its page."""

from __future__ import annotations

import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress

import uvicorn

from gortho.app.server import make_app

HOST = "127.0.0.1"
#: The port unless another is asked for; where it is taken, any that is free.
PORT = 8765
#: Seconds that open requests get when the server ends.
GRACE = 2


def listen(port: int | None) -> socket.socket:
    """A socket that listens on this machine only."""
    for number in (PORT, 0) if port is None else (port,):
        with suppress(OSError):
            return socket.create_server((HOST, number))
    raise OSError(f"port {port} is taken: choose another by --port, or leave it out")


def serve(port: int | None, browser: bool, told: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; `told` gets the address, which has the token."""
    token = secrets.token_urlsafe(24)
    with listen(port) as listening:
        address = f"http://{HOST}:{listening.getsockname()[1]}/?token={token}"
        config = uvicorn.Config(
            make_app(token),
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=GRACE,
        )
        told(address)
        if browser:
            # It waits until the server answers, and a browser in the terminal would keep the server waiting.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        uvicorn.Server(config).run(sockets=[listening])
