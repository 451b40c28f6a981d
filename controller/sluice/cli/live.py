"""The commands that speak to a running controller: status, explain, drain, mode, reload, events."""

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
"""Exit status: what was waited for has not come."""
_LEAST_PAUSE_S = 1.0
"""Between two looks at a drained server; a look at a large table takes longer, and then so does the pause."""
_BAR_CELLS, _NUMBERS_CELLS = 40, 22
"""Terminal cells of the bar at most, and of what stands beside name and bar: connections left, time, gaps."""

Subparsers = Any
"""What argparse gives no public name: the result of ``add_subparsers``."""


def add(commands: Subparsers, config_option: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add these commands to the parser."""

    def command(name: str, text: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=text)
        config_option(one)
        one.add_argument("--socket", metavar="PATH", help="control socket; default: the one the configuration names")
        one.add_argument("--json", action="store_true", help="as JSON")
        one.set_defaults(run=run, misuse=one.error)
        return one

    status = command("status", "services, servers, ratios, R, counts, drops", _status)
    status.add_argument("--pins", action="store_true", help="count the pinned connections too (reads the whole table)")
    status.add_argument(
        "--watch", metavar="SECONDS", nargs="?", const=2.0, type=_seconds, help="again every so many seconds [2]"
    )
    explain = command("explain", "say where a client's connections go, and why", _explain)
    explain.add_argument(
        "client", metavar="CLIENT[:PORT]", nargs="?", help="an address; without a port all its connections"
    )
    explain.add_argument("service", metavar="SERVICE", nargs="?")
    explain.add_argument(
        "--packet", metavar="FILE|HEX", help="in place of them: a frame's path through a copy of the embedded switch"
    )
    explain.add_argument("--in-port", metavar="N", type=int, help="the port it comes in by; default: by its source")
    drain = command("drain", "give a server no new connections", _drain)
    drain.add_argument("--wait", action="store_true", help="until it has no open connection")
    drain.add_argument("--timeout", metavar="S", type=_seconds, help="wait no longer; the server goes on draining")
    undrain = command("undrain", "give a server its share again", _undrain)
    for one in (drain, undrain):
        one.add_argument("server", metavar="SERVER", help="a server's name, or SERVICE/SERVER")
    mode = command("mode", "change who decides a service's ratios, until the next reload", _mode)
    mode.add_argument("service", metavar="SERVICE")
    mode.add_argument("mode", metavar="MODE", choices=list(Mode), help=", ".join(Mode))
    reload = command("reload", "have the controller read its configuration again", _reload)
    reload.add_argument("--dry-run", action="store_true", help="only say what would change in the switch")
    events = command("events", "what happened last: decisions, drains, crowds, links", _events)
    events.add_argument("-f", "--follow", action="store_true", help="and what happens from now on")


def _seconds(text: str) -> float:
    try:
        value = float(text) if text.isascii() else math.nan
    except ValueError:
        value = math.nan
    if not 0.05 <= value <= 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write seconds from 0.05 to 1000000, such as 2")
    return value


def _socket(options: argparse.Namespace) -> str:
    return options.socket or load(options.config).control


def _say(options: argparse.Namespace, result: Any, text: str | None = None) -> int:
    if options.json:
        print(json.dumps({"result": result} if isinstance(result, str) else result, indent=2))
    else:
        terminal.show(str(result) if text is None else text)
    return 0


# -- what is to be seen


def _status(options: argparse.Namespace) -> int:
    path, request = _socket(options), {"command": "status", "pins": options.pins}
    result = controlclient.ask(path, request)
    if options.watch is None:
        return _say(options, result, render(terminal.writable(result), terminal.width()))
    return _watch(options, path, request, result)


def _watch(options: argparse.Namespace, path: str, request: dict[str, Any], result: Any) -> NoReturn:
    """Ends by Ctrl-C. A controller that has gone is waited for."""
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
    """In place of a screen."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return


def _explain(options: argparse.Namespace) -> int:
    if options.packet is not None:
        if options.client is not None:
            options.misuse("--packet stands in place of CLIENT and SERVICE")
        path = packetpath.path_of(load(options.config), options.packet, options.in_port)
        return _say(options, path, packetpath.render(path))
    if options.service is None:
        options.misuse("give CLIENT and SERVICE, or --packet")
    request = {"command": "explain", "client": options.client, "service": options.service}
    result = controlclient.ask(_socket(options), request)
    return _say(options, result, explaintext.render(result))


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


# -- what is to be done


def _undrain(options: argparse.Namespace) -> int:
    return _say(options, controlclient.ask(_socket(options), {"command": "undrain", "server": options.server}))


def _mode(options: argparse.Namespace) -> int:
    request = {"command": "mode", "service": options.service, "mode": options.mode}
    return _say(options, controlclient.ask(_socket(options), request))


def _reload(options: argparse.Namespace) -> int:
    path, request = _socket(options), {"command": "reload", "dry_run": options.dry_run}
    if options.socket is None or options.config != DEFAULT_CONFIG:
        request["config"] = str(Path(options.config).absolute())
    result = controlclient.ask(path, request)
    if not options.dry_run:
        return _say(options, result)
    changes = "\n".join([*result, f"{len(result)} updates; nothing was written"])
    return _say(options, {"updates": result}, changes)


def _drain(options: argparse.Namespace) -> int:
    if options.timeout is not None and not options.wait:
        options.misuse("--timeout needs --wait")
    path = _socket(options)
    result = controlclient.ask(path, {"command": "drain", "server": options.server})
    if not options.wait:
        return _say(options, result)
    began = time.monotonic()
    left = _wait(path, options.server, options.timeout)
    waited_s = round(time.monotonic() - began, 1)
    if left:
        text = f"{options.server} drains and has {left} open connections after {waited_s:g} s"
        print(f"sluice: {text}", file=sys.stderr)
    else:
        text = f"{options.server} is drained: no open connection is left"
    if options.json or not left:
        _say(options, {"server": options.server, "left": left, "waited_s": waited_s}, text)
    return TIMED_OUT if left else 0


def _wait(path: str, server: str, timeout_s: float | None) -> int:
    """Wait until a server has no open connection, or for so long; how many are left. Raises Refused."""
    console = Console(stderr=True, highlight=False)
    cells = min(_BAR_CELLS, console.width // 4)
    columns = (TextColumn("{task.description}"), BarColumn(cells), TextColumn("{task.fields[left]} left"))
    name = textlayout.cut(terminal.writable(server), max(1, console.width - cells - _NUMBERS_CELLS))
    until, bar = math.inf if timeout_s is None else time.monotonic() + timeout_s, terminal.draws(console)
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not bar) as progress:
        task, most, last = progress.add_task(name, total=None, left="?"), 0, -1
        while True:
            asked = time.monotonic()
            left = int(controlclient.ask(path, {"command": "left", "server": server}))
            took = time.monotonic() - asked
            most = max(most, left)
            progress.update(task, total=max(1, most), completed=most - left if most else 1, left=left)
            if not bar and left != last:
                print(f"{server}: {left} connections left", file=sys.stderr, flush=True)
            last, now = left, time.monotonic()
            if not left or now >= until:
                return left
            time.sleep(min(max(_LEAST_PAUSE_S, 10 * took), until - now))
