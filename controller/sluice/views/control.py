"""The control socket: a Unix socket that accepts one JSON request per line and returns one JSON answer per line."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from sluice.config.load import ConfigError
from sluice.controller import Controller
from sluice.log import logger
from sluice.loops.commands import Refused
from sluice.loops.events import Events
from sluice.switch.errors import SwitchError
from sluice.views import status
from sluice.views.explain import explain

_log = logger("control")

_LINE = 64 * 1024
_COMMANDS = ("status", "reload", "drain", "undrain", "mode", "explain", "left", "events")


class ControlInUse(Exception):
    """Another controller already listens on the socket."""


async def answer(controller: Controller, request: dict[str, Any]) -> dict[str, Any]:
    """Execute one command. Errors of the request or of the switch are not raised; the answer reports them."""
    try:
        match request.get("command"):
            case "status":
                result: Any = await status.gather(controller, pins=bool(request.get("pins")))
            case "reload":
                if (path := request.get("config")) is not None:
                    controller.reads(str(path))
                result = await (controller.preview() if request.get("dry_run") else controller.reload())
            case "drain":
                result = await controller.drain(str(request.get("server", "")), drain=True)
            case "undrain":
                result = await controller.drain(str(request.get("server", "")), drain=False)
            case "mode":
                result = await controller.set_mode(str(request.get("service", "")), str(request.get("mode", "")))
            case "left":
                result = await controller.left(str(request.get("server", "")))
            case "events":
                result = list(controller.world.events.past)
            case "explain":
                result = await explain(controller, str(request.get("client", "")), str(request.get("service", "")))
            case unknown:
                raise Refused(f"no command {unknown!r}; there is: {', '.join(_COMMANDS)}")
    except (Refused, ConfigError, SwitchError) as error:
        return {"ok": False, "error": str(error)}
    return {"ok": True, "result": result}


@asynccontextmanager
async def serve(controller: Controller, path: str) -> AsyncGenerator[None]:
    """Listen for commands. Raises ControlInUse, or OSError with the path if the socket cannot be created.

    Only the controller's user can use the socket. A socket that a former controller left behind is replaced.
    """

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, ValueError):
            while line := await reader.readline():
                if _follows(line):
                    await _send_events(controller.world.events, reader, writer)
                    break
                reply = await _reply(controller, line)
                writer.write(json.dumps(reply).encode() + b"\n")
                await writer.drain()
        writer.close()

    try:
        _remove_stale(path)
        server = await asyncio.start_unix_server(handle, sock=_bound(path), limit=_LINE)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), f"control socket {path}") from error
    try:
        yield
    finally:
        server.close()
        Path(path).unlink(missing_ok=True)


def _bound(path: str) -> socket.socket:
    """Return a socket bound to a path that only the controller's user may connect to, from the path's creation on."""
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        bound.bind(path)
    except OSError:
        bound.close()
        raise
    finally:
        os.umask(mask)
    return bound


def _follows(line: bytes) -> bool:
    """Return whether a request subscribes to events, which are sent as they occur until the client disconnects."""
    try:
        request = json.loads(line)
    except ValueError:
        return False
    return isinstance(request, dict) and request.get("command") == "events" and bool(request.get("follow"))


async def _send_events(events: Events, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with events.follow() as follower:
        writer.write(json.dumps({"ok": True, "result": list(events.past)}).encode() + b"\n")
        disconnected = asyncio.create_task(reader.read())
        try:
            while not disconnected.done():
                await writer.drain()
                event = asyncio.create_task(follower.next())
                await asyncio.wait({disconnected, event}, return_when=asyncio.FIRST_COMPLETED)
                if event.done():
                    writer.write(json.dumps(event.result()).encode() + b"\n")
                event.cancel()
        finally:
            disconnected.cancel()


async def _reply(controller: Controller, line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except ValueError as error:
        return {"ok": False, "error": f"the request is not JSON: {error}"}
    if not isinstance(request, dict):
        return {"ok": False, "error": "the request is not a JSON object"}
    try:
        return await answer(controller, request)
    except Exception as error:
        # An error in a command must neither end the controller nor be hidden.
        _log.exception("command failed", extra={"request": request})
        return {"ok": False, "error": f"internal error: {error!r}; see the controller's log"}


def _remove_stale(path: str) -> None:
    if not Path(path).is_socket():
        return
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            Path(path).unlink(missing_ok=True)
            return
    raise ControlInUse(f"{path} is in use by another controller; give this one another `control:` path")
