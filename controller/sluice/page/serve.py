"""The page's process: an HTTP server on the page's address that runs until a signal ends it."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI
from nicegui import Client, ui

from sluice.config.model import PageConfig

from .elements import Page
from .guard import Guard
from .hub import Hub
from .token import Lock

_FAREWELL_S = 1
"""Seconds for which the server waits for open connections at shutdown."""
_CHECK_S = 0.5
"""Seconds between checks for shutdown."""
_NICE = 5
"""The process's niceness: on busy processors, controller and switch have precedence."""


class _Server(uvicorn.Server):
    """A server whose main loop only checks for shutdown, less often than uvicorn's ten times a second."""

    async def main_loop(self) -> None:
        """Wait for shutdown."""
        while not self.should_exit:  # noqa: ASYNC110 - a signal's handler sets it
            await asyncio.sleep(_CHECK_S)


def serve(config: PageConfig, control: str, announce: Callable[[str], None], *, attached: bool, history: bool) -> None:
    """Serve the page of the controller that listens on ``control``, until a signal ends the process.

    ``attached``: the process also ends when standard input ends, which happens when the parent controller exits.
    ``history``: request the controller's status also without viewers, to record it. Raises OSError for an unusable
    address or file, and Refused for an invalid token.
    """
    lock = Lock(config.token_file or f"{control}.token") if config.control else None
    host, _, port = config.address.rpartition(":")
    host = host.strip("[]")
    hub = Hub(control)

    @ui.page("/", title="sluice")
    def page(client: Client, service: str | None = None) -> None:  # pyright: ignore[reportUnusedFunction]
        Page(hub, lock, client, service)

    # NiceGUI's warnings are not logged: otherwise any client could fill the log with requests for non-existent pages.
    logging.getLogger("nicegui").setLevel(logging.ERROR)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    ui.run_with(app, dark=None, tailwind=False, binding_refresh_interval=None, show_welcome_message=False)
    server = _Server(
        uvicorn.Config(
            Guard(app, host, config.names),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_FAREWELL_S,
        )
    )
    with _listening(host, int(port), config.address) as listener:
        announce(f"sluice: page http://{config.address}/")
        os.nice(_NICE)
        asyncio.run(_run(server, listener, hub if history else None, attached=attached))


def _listening(host: str, port: int, address: str) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=128)
    except socket.gaierror as error:
        raise OSError(error.errno, error.strerror, f"page {address}") from error
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), f"page {address}") from error


async def _run(server: uvicorn.Server, listener: socket.socket, recorder: Hub | None, *, attached: bool) -> None:
    loop = asyncio.get_running_loop()
    if recorder is not None:
        recorder.join("history", lambda: None)
    if attached:
        loop.add_reader(sys.stdin.fileno(), lambda: _end_with_input(server, loop))
    await server.serve(sockets=[listener])


def _end_with_input(server: uvicorn.Server, loop: asyncio.AbstractEventLoop) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        loop.remove_reader(sys.stdin.fileno())
        server.should_exit = True
