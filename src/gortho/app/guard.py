"""`Guard`: only the page that this server made, in the browser of who started it, is answered."""

from __future__ import annotations

import secrets

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Names of this machine; others, which a foreign page may have pointed here, are refused.
HOSTS = ("127.0.0.1", "localhost")
#: Nothing is loaded from elsewhere, nothing is sent elsewhere, nothing runs that is not in a file of ours.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: The report has its style in it, and no scripts.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Refuses requests of other pages, and those without the token of the printed address.

    The token comes once, in the address; from then on it is a cookie that only this server's pages send.
    """

    def __init__(self, app: ASGIApp, token: str):
        self.app, self.token, self.cookie = app, token, f"gortho-{secrets.token_hex(4)}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets here
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await (self._refusal(scope) or self.app)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        request = Request(scope)
        headers, given = request.headers, request.query_params.get("token")
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{headers.get('host')}":
            return PlainTextResponse(f"refused: the request comes from {origin}", 403)
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return PlainTextResponse("refused: the request comes from another page", 403)
        if given is not None and self._right(given) and scope["method"] == "GET" and scope["path"] == "/":
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
            return answer
        if not self._right(request.cookies.get(self.cookie, "")):
            return PlainTextResponse("refused: open the address that gortho app printed, with its token", 403)
        return None

    def _right(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())
