"""The ``sluice`` command: run the controller, check a configuration, and speak to a running controller."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress

from . import __version__, explaintext, log, rulescommand
from .balance import Mode
from .config import Config
from .configload import ConfigError, load
from .loops import control, metrics
from .loops.commands import Refused
from .loops.controller import Controller
from .loops.newstrace import NewsTrace
from .loops.trace import Trace
from .replay import command
from .replay.against import TraceError
from .replay.capture import CaptureError
from .statustext import render
from .switch.errors import SwitchError
from .switch.targets import TARGETS

_DEFAULT_CONFIG = "sluice.yaml"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status: 0 done, 1 failed or refused, 2 misused."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except ConfigError as error:
        print(error, file=sys.stderr)
    except (SwitchError, Refused, control.ControlInUse, CaptureError, TraceError) as error:
        print(f"sluice: {error}", file=sys.stderr)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"sluice: {place}{error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sluice", description=__doc__)
    parser.add_argument("--version", action="version", version=f"sluice {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="drive a switch by a configuration")
    _config_option(run)
    run.add_argument("--target", choices=list(TARGETS), help="kind of switch; default: what it says of itself")
    run.add_argument("--trace-file", metavar="FILE", help="append one JSON line per decision")
    run.add_argument("--news-trace", metavar="FILE", help="append a CSV line per decision of flash-crowd control")
    run.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")
    run.add_argument("--log-json", action="store_true", help="log as JSON instead of key=value")
    run.set_defaults(run=_run)

    check = commands.add_parser("check", help="check a configuration, offline")
    _config_option(check)
    check.set_defaults(run=rulescommand.check)

    match = commands.add_parser("match", help="say which rule of a content service takes a request, offline")
    _config_option(match)
    rulescommand.add_options(match)
    match.set_defaults(run=rulescommand.match)

    status = commands.add_parser("status", help="services, servers, ratios, R, counts, drops")
    _socket_options(status)
    status.add_argument("--json", action="store_true", help="as JSON")
    status.add_argument("--pins", action="store_true", help="count the pinned connections too (reads the whole table)")
    status.set_defaults(run=_status)

    explain = commands.add_parser("explain", help="say where a client's connections go, and why")
    explain.add_argument("client", metavar="CLIENT[:PORT]", help="an address; without a port all its connections")
    explain.add_argument("service", metavar="SERVICE")
    _socket_options(explain)
    explain.add_argument("--json", action="store_true", help="as JSON")
    explain.set_defaults(run=_explain)

    for name, text in (
        ("drain", "give a server no new connections"),
        ("undrain", "give a server its share again"),
    ):
        one = commands.add_parser(name, help=text)
        one.add_argument("server", metavar="SERVER", help="a server's name, or SERVICE/SERVER")
        _socket_options(one)
        one.set_defaults(run=_command, command=name, fields=["server"])

    reload = commands.add_parser("reload", help="have the controller read its configuration again")
    _socket_options(reload)
    reload.set_defaults(run=_command, command="reload", fields=[])

    replay = commands.add_parser("replay", help="decide from a capture, offline, as the controller would have")
    _config_option(replay)
    command.add_options(replay)
    replay.set_defaults(run=command.replay)

    mode = commands.add_parser("mode", help="change who decides a service's ratios, until the next reload")
    mode.add_argument("service", metavar="SERVICE")
    mode.add_argument("mode", metavar="MODE", choices=list(Mode), help=", ".join(Mode))
    _socket_options(mode)
    mode.set_defaults(run=_command, command="mode", fields=["service", "mode"])
    return parser


def _config_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", "-c", metavar="FILE", default=_DEFAULT_CONFIG, help="default: %(default)s")


def _socket_options(parser: argparse.ArgumentParser) -> None:
    _config_option(parser)
    parser.add_argument("--socket", metavar="PATH", help="control socket; default: the one the configuration names")


def _socket(options: argparse.Namespace) -> str:
    return options.socket or load(options.config).control


def _status(options: argparse.Namespace) -> int:
    result = control.ask(_socket(options), {"command": "status", "pins": options.pins})
    print(json.dumps(result, indent=2) if options.json else render(result))
    return 0


def _explain(options: argparse.Namespace) -> int:
    request = {"command": "explain", "client": options.client, "service": options.service}
    result = control.ask(_socket(options), request)
    print(json.dumps(result, indent=2) if options.json else explaintext.render(result))
    return 0


def _command(options: argparse.Namespace) -> int:
    request = {"command": options.command} | {field: getattr(options, field) for field in options.fields}
    print(control.ask(_socket(options), request))
    return 0


def _run(options: argparse.Namespace) -> int:
    config = load(options.config)
    log.configure(options.log_level, as_json=options.log_json)
    try:
        news_trace = options.news_trace or (config.news.trace_file if config.news else None)
        trace = options.trace_file or config.trace_file
        asyncio.run(_serve(config, options.config, options.target, trace, news_trace))
    except asyncio.CancelledError:
        return 0
    return 0


async def _serve(
    config: Config, path: str, target: str | None, trace_file: str | None, news_trace_file: str | None
) -> None:
    main_task = asyncio.current_task()
    assert main_task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, main_task.cancel)
    async with AsyncExitStack() as stack:
        trace = Trace(trace_file)
        stack.callback(trace.close)
        news_trace = NewsTrace(news_trace_file)
        stack.callback(news_trace.close)
        controller = Controller(config, path, trace, _announce, news_trace, target=target)
        await stack.enter_async_context(control.serve(controller, config.control))
        if config.metrics:
            stack.enter_context(metrics.serve(controller, config.metrics.address))
        loop.add_signal_handler(signal.SIGHUP, lambda: _reload_on_signal(controller))
        with suppress(asyncio.CancelledError):
            await controller.run()


_reloads: set[asyncio.Task[None]] = set()


def _reload_on_signal(controller: Controller) -> None:
    task = asyncio.create_task(_reload(controller), name="sighup")
    _reloads.add(task)
    task.add_done_callback(_reloads.discard)


async def _reload(controller: Controller) -> None:
    try:
        await controller.reload()
    except (Refused, ConfigError, SwitchError) as error:
        log.logger("control").error("not reloaded", extra={"error": str(error)})


def _announce(line: str) -> None:
    try:
        print(line, flush=True)
    except OSError:
        # Who waited for it has read enough. What is left of it is not to fail once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
