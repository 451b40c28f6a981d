"""The commands that send requests to a running controller: status, explain, drain, mode, reload, events."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from sluice.balance import Mode
from sluice.config.load import DEFAULT_CONFIG, load
from sluice.loops import controlclient
from sluice.loops.commands import Refused
from sluice.views import explaintext, packetpath, textlayout
from sluice.views.statustext import render

from . import terminal

TIMED_OUT = 3
"""The exit status after a time limit has expired."""
_LEAST_PAUSE_S = 1.0
"""The shortest time between two checks of a drained server, in seconds. The pause grows with the duration of a check,
which is long for a large connection table."""
_BAR_CELLS, _NUMBERS_CELLS = 40, 22
"""The largest width of the progress bar, and the width of the other columns (connections left, time, gaps), in terminal
cells."""

Subparsers = Any
"""The type of the result of ``add_subparsers``, for which argparse has no public name."""


def add(commands: Subparsers, config_option: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add these commands to the parser."""

    def command(name: str, text: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        parser = commands.add_parser(name, help=text)
        config_option(parser)
        parser.add_argument("--socket", metavar="PATH", help="control socket; default: the one the configuration names")
        parser.add_argument("--json", action="store_true", help="as JSON")
        parser.set_defaults(run=run, misuse=parser.error)
        return parser

    status = command("status", "services, servers, ratios, R, counts, drops", _status)
    status.add_argument("--pins", action="store_true", help="count the pinned connections too (reads the whole table)")
    status.add_argument(
        "--watch", metavar="SECONDS", nargs="?", const=2.0, type=_seconds, help="repeat every SECONDS [2]"
    )
    explain = command("explain", "show where a client's connections go, and why", _explain)
    explain.add_argument(
        "client", metavar="CLIENT[:PORT]", nargs="?", help="an address; without a port all its connections"
    )
    explain.add_argument("service", metavar="SERVICE", nargs="?")
    explain.add_argument(
        "--packet", metavar="FILE|HEX", help="instead: a frame's path through a copy of the embedded switch"
    )
    explain.add_argument("--in-port", metavar="N", type=int, help="the frame's ingress port; default: by its source")
    drain = command("drain", "give a server no new connections", _drain)
    drain.add_argument("--wait", action="store_true", help="wait until it has no open connection")
    drain.add_argument(
        "--timeout", metavar="S", type=_seconds, help="stop waiting after S seconds; the server goes on draining"
    )
    undrain = command("undrain", "give a server its share again", _undrain)
    for parser in (drain, undrain):
        parser.add_argument("server", metavar="SERVER", help="a server's name, or SERVICE/SERVER")
    mode = command("mode", "change how a service's ratios are decided, until the next reload", _mode)
    mode.add_argument("service", metavar="SERVICE")
    mode.add_argument("mode", metavar="MODE", choices=list(Mode), help=", ".join(Mode))
    reload = command("reload", "have the controller read its configuration again", _reload)
    reload.add_argument("--dry-run", action="store_true", help="only show what would change in the switch")
    events = command("events", "the latest events: decisions, drains, crowds, links", _events)
    events.add_argument("-f", "--follow", action="store_true", help="then show new events as they happen")


def _seconds(text: str) -> float:
    try:
        value = float(text) if text.isascii() else math.nan
    except ValueError:
        value = math.nan
    if not 0.05 <= value <= 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write seconds from 0.05 to 1000000, such as 2")
    return value


def _socket(options: argparse.Namespace) -> str:
    return options.socket or load(options.config).control


def _print_result(options: argparse.Namespace, result: Any, text: str | None = None) -> int:
    if options.json:
        print(json.dumps({"result": result} if isinstance(result, str) else result, indent=2))
    else:
        terminal.show(str(result) if text is None else text)
    return 0


# -- commands that only show data


def _status(options: argparse.Namespace) -> int:
    path, request = _socket(options), {"command": "status", "pins": options.pins}
    result = controlclient.ask(path, request)
    if options.watch is None:
        return _print_result(options, result, render(terminal.writable(result), terminal.width()))
    return _watch(options, path, request, result)


def _watch(options: argparse.Namespace, path: str, request: dict[str, Any], result: Any) -> NoReturn:
    """Show the status repeatedly until Ctrl-C. If the controller ends, wait until another one starts."""
    console = Console(highlight=False)
    screen = terminal.draws(console) and not options.json
    with Live(console=console, screen=screen, auto_refresh=False) if screen else _Plain() as live:
        while True:
            shown, width = terminal.writable(result), terminal.width()
            text = textlayout.wrapped(shown if isinstance(shown, str) else render(shown, width), width)
            head = f"{datetime.now():%H:%M:%S}, every {options.watch:g} s; Ctrl-C ends"
            if isinstance(live, Live):
                live.update(Group(head, "", terminal.styled(text)), refresh=True)
            elif options.json:
                print(json.dumps({"error": result} if isinstance(result, str) else result), flush=True)
            else:
                print(f"{head}\n{text}\n", flush=True)
            time.sleep(options.watch)
            try:
                result = controlclient.ask(path, request)
            except Refused as error:
                result = str(error)


class _Plain:
    """A substitute for the context manager ``Live``, for JSON and for output in which lines cannot be overwritten."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return


def _explain(options: argparse.Namespace) -> int:
    if options.packet is not None:
        if options.client is not None:
            options.misuse("--packet stands in place of CLIENT and SERVICE")
        path = packetpath.path_of(load(options.config), options.packet, options.in_port)
        return _print_result(options, path, packetpath.render(path))
    if options.service is None:
        options.misuse("give CLIENT and SERVICE, or --packet")
    request = {"command": "explain", "client": options.client, "service": options.service}
    result = controlclient.ask(_socket(options), request)
    return _print_result(options, result, explaintext.render(result))


def _events(options: argparse.Namespace) -> int:
    path = _socket(options)
    for event in controlclient.follow(path) if options.follow else controlclient.ask(path, {"command": "events"}):
        if options.json:
            print(json.dumps(event), flush=True)
        else:
            when = datetime.fromtimestamp(event["time"])
            terminal.show(f"{when:%Y-%m-%d %H:%M:%S}  {event['kind']:8}  {event['text']}")
            if event.get("lost_after_this"):
                terminal.show(f"({event['lost_after_this']} events left out: read faster)")
            sys.stdout.flush()
    if options.follow:
        raise Refused(f"{path}: the controller has ended")
    return 0


# -- commands that change the controller's state


def _undrain(options: argparse.Namespace) -> int:
    return _print_result(options, controlclient.ask(_socket(options), {"command": "undrain", "server": options.server}))


def _mode(options: argparse.Namespace) -> int:
    request = {"command": "mode", "service": options.service, "mode": options.mode}
    return _print_result(options, controlclient.ask(_socket(options), request))


def _reload(options: argparse.Namespace) -> int:
    path, request = _socket(options), {"command": "reload", "dry_run": options.dry_run}
    if options.socket is None or options.config != DEFAULT_CONFIG:
        request["config"] = str(Path(options.config).absolute())
    result = controlclient.ask(path, request)
    if not options.dry_run:
        return _print_result(options, result)
    changes = "\n".join([*result, f"{len(result)} updates; nothing was written"])
    return _print_result(options, {"updates": result}, changes)


def _drain(options: argparse.Namespace) -> int:
    if options.timeout is not None and not options.wait:
        options.misuse("--timeout needs --wait")
    path = _socket(options)
    result = controlclient.ask(path, {"command": "drain", "server": options.server})
    if not options.wait:
        return _print_result(options, result)
    began = time.monotonic()
    remaining = _wait(path, options.server, options.timeout)
    waited_s = round(time.monotonic() - began, 1)
    if remaining:
        text = f"{options.server} drains and has {remaining} open connections after {waited_s:g} s"
        print(f"sluice: {text}", file=sys.stderr)
    else:
        text = f"{options.server} is drained: no open connection is left"
    if options.json or not remaining:
        _print_result(options, {"server": options.server, "left": remaining, "waited_s": waited_s}, text)
    return TIMED_OUT if remaining else 0


def _wait(path: str, server: str, timeout_s: float | None) -> int:
    """Wait until a server has no open connection, for at most ``timeout_s`` seconds. Returns how many connections are
    left. Raises Refused if the controller refuses the question or cannot be reached."""
    console = Console(stderr=True, highlight=False)
    cells = min(_BAR_CELLS, console.width // 4)
    columns = (TextColumn("{task.description}"), BarColumn(cells), TextColumn("{task.fields[left]} left"))
    name = textlayout.cut(terminal.writable(server), max(1, console.width - cells - _NUMBERS_CELLS))
    until, bar = math.inf if timeout_s is None else time.monotonic() + timeout_s, terminal.draws(console)
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not bar) as progress:
        task, most, last = progress.add_task(name, total=None, left="?"), 0, -1
        while True:
            asked_at_s = time.monotonic()
            remaining = int(controlclient.ask(path, {"command": "left", "server": server}))
            duration_s = time.monotonic() - asked_at_s
            most = max(most, remaining)
            progress.update(task, total=max(1, most), completed=most - remaining if most else 1, left=remaining)
            if not bar and remaining != last:
                print(f"{server}: {remaining} connections left", file=sys.stderr, flush=True)
            last, now = remaining, time.monotonic()
            if not remaining or now >= until:
                return remaining
            time.sleep(min(max(_LEAST_PAUSE_S, 10 * duration_s), until - now))
