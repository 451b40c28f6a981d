"""Refuses requests that other sites make a browser send, and sets headers that restrict what the page may embed.

Another site can make a visitor's browser send requests to this server, even under a name of the other site that
resolves to this machine (DNS rebinding). The browser's headers Origin, Sec-Fetch-Site and Host show the origin of a
request.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
"""The content policy: the page loads nothing from other hosts, and no other site may frame the page. Inline scripts are
allowed because NiceGUI uses them."""


def refusal(headers: Mapping[str, str], own: str, names: Collection[str] = ()) -> str | None:
    """Return why a request is refused; None for a valid request.

    ``own``: the host of the page's address. ``names``: the host names under which browsers reach the page through a
    proxy, with the port if browsers send it (`page.names`).
    """
    host = headers.get("host", "")
    name = _host_of(f"//{host}")
    hosts = {own.lower().rstrip("."), "localhost", *(_host_of(f"//{other}") for other in names)}
    if not (name in hosts or _is_address(name)):
        return (
            f"the request asks for the host {host!r}, which is not this page's: another site may have sent it. "
            "Open the page by its address, or list the host name of a proxy before it in `page.names`."
        )
    origin = headers.get("origin")
    # The Host header may contain the page's address, or the proxy's name without a port, although browsers send the
    # full name in Origin.
    sites = {host.lower(), *(other.lower() for other in names)}
    if origin is not None and origin.lower().partition("://")[2] not in sites:
        return f"the request comes from another site ({origin}); this page accepts only its own"
    if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
        return "the request comes from another site; this page accepts only its own"
    return None


def _host_of(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """An ASGI application that checks requests and forwards valid ones to another application."""

    def __init__(self, app: ASGIApp, own: str, names: Collection[str]) -> None:
        self.app = app
        self._own, self._names = own, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection as specified by ASGI."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        why = refusal(Headers(scope=scope), self._own, self._names)
        if why is not None and scope["type"] == "websocket":
            await send({"type": "websocket.close"})  # 403; uvicorn would log a response as an incomplete handshake
            return
        if why is not None:
            await PlainTextResponse(f"sluice: {why}\n", 403)(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                _secure(message)
            await send(message)

        await self.app(scope, receive, sending)


def _secure(message: dict[str, Any] | Message) -> None:
    headers = MutableHeaders(scope=message)
    headers["Content-Security-Policy"] = _POLICY
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Referrer-Policy"] = "no-referrer"
