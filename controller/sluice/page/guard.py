"""What stands in front of the page: requests that other sites have a browser make, and headers against what they embed.

A page of another site can have the visitor's browser send requests here, also by a name of its own that it lets resolve
to this machine (DNS rebinding). The browser says where they come from: Origin, Sec-Fetch-Site and Host.
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
"""Nothing comes from other hosts, and no other site shows the page in a frame. NiceGUI's own scripts are inline."""


def refusal(headers: Mapping[str, str], own: str, names: Collection[str] = ()) -> str | None:
    """Why a request is not taken; None for a good one.

    ``own`` is the host of the page's address. ``names`` are those that a proxy in front of it has for browsers, each
    with a port where browsers name one (`page.names`).
    """
    host = headers.get("host", "")
    name = _host_of(f"//{host}")
    known = {own.lower().rstrip("."), "localhost", *(_host_of(f"//{other}") for other in names)}
    if not (name in known or _is_address(name)):
        return (
            f"the request asks for the host {host!r}, which this page does not have: another site may have sent it. "
            "Open the page by its address, or list the name that a proxy in front of it has in `page.names`."
        )
    origin = headers.get("origin")
    # A proxy may ask with the page's address, or with its own name but not its port, where browsers have that name.
    sites = {host.lower(), *(other.lower() for other in names)}
    if origin is not None and origin.lower().partition("://")[2] not in sites:
        return f"the request comes from another site ({origin}); this page takes only those of its own"
    if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
        return "the request comes from another site; this page takes only those of its own"
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
    """An ASGI application in front of another one."""

    def __init__(self, app: ASGIApp, own: str, names: Collection[str]) -> None:
        self.app = app
        self._own, self._names = own, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        why = refusal(Headers(scope=scope), self._own, self._names)
        if why is not None and scope["type"] == "websocket":
            await send({"type": "websocket.close"})  # 403; uvicorn would log a response as a handshake left undone
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
