"""``sluice page``: serves the live page of a running controller; ``sluice run`` also starts it as a child process."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sluice.config.load import load
from sluice.config.model import PageConfig
from sluice.config.types import HostPort
from sluice.log import logger
from sluice.loops.commands import Refused

_log = logger("page")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_FAREWELL_S = 5.0


def add(commands: Any, config_option: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the command to the parser."""
    page = commands.add_parser("page", help="serve the live page of a running controller")
    config_option(page)
    page.add_argument("--socket", metavar="PATH", help="control socket; default: the one the configuration names")
    page.add_argument("--address", metavar="HOST:PORT", type=_address, help="default: the one the configuration names")
    page.add_argument(
        "--history", action="store_true", help="read also without viewers, so that charts begin with this command"
    )
    # With --attached, the page ends when its standard input ends, which is when its parent process ends.
    page.add_argument("--attached", action="store_true", help=argparse.SUPPRESS)
    page.set_defaults(run=_page)


def _address(text: str) -> str:
    try:
        return TypeAdapter(HostPort).validate_python(text)
    except ValidationError as error:
        raise argparse.ArgumentTypeError(error.errors()[0]["msg"].removeprefix("Value error, ")) from error


def _page(options: argparse.Namespace) -> int:
    config = load(options.config)
    page = config.page or PageConfig()
    if options.address is not None:
        page = page.model_copy(update={"address": options.address})
    if find_spec("nicegui") is None:
        raise Refused("the page needs NiceGUI: pip install 'sluice[page]'")
    from sluice.page.serve import serve  # noqa: PLC0415 - takes a second, and is there with the extra only

    serve(page, options.socket or config.control, _announce, attached=options.attached, history=options.history)
    return 0


def _announce(line: str) -> None:
    print(line, flush=True)


@asynccontextmanager
async def child(config_path: str) -> AsyncGenerator[None]:
    """Run the page as a child process for the time of an ``async with`` block. If the process ends, restart it after a
    pause; pauses double from restart to restart, up to a minute."""
    task = asyncio.create_task(_keep(config_path), name="page")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _keep(config_path: str) -> None:
    loop, pause = asyncio.get_running_loop(), _FIRST_PAUSE_S
    while True:
        began = loop.time()
        try:
            reason = await _once(config_path)
        except (OSError, ValueError) as error:  # the process cannot be started, or an output line is too long
            reason = str(error)
        pause = _FIRST_PAUSE_S if loop.time() - began > _LONGEST_PAUSE_S else min(2 * pause, _LONGEST_PAUSE_S)
        _log.error("the page has ended; it is started again", extra={"error": reason, "in_s": pause})
        await asyncio.sleep(pause)


async def _once(config_path: str) -> str:
    """Run the page until it ends. Returns its last line on standard error, or its exit status."""
    command = [sys.executable, "-m", "sluice", "page", "--attached", "--config", config_path]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert process.stderr is not None
    last_line = ""
    try:
        while line := await process.stderr.readline():
            last_line = line.decode(errors="replace").strip() or last_line
            _log.debug("page", extra={"said": last_line})
        await process.wait()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.terminate()
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _FAREWELL_S)
        if process.returncode is None:
            process.kill()
            await process.wait()
    return last_line or f"exit status {process.returncode}"
