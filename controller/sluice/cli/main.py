"""The ``sluice`` command: run the controller, check a configuration, and control a running controller."""

from __future__ import annotations

import argparse
import asyncio
import os
import select
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress

import shtab

from sluice import __version__, log, proxies
from sluice.config.load import DEFAULT_CONFIG, ConfigError, load
from sluice.config.model import Config
from sluice.controller import Controller
from sluice.features.balance.trace import Trace
from sluice.features.crowd.trace import NewsTrace
from sluice.loops.commands import Refused
from sluice.loops.supervisor import Supervisor
from sluice.loops.watchedtime import WatchedLoop
from sluice.replay import command
from sluice.replay.capture import CaptureError
from sluice.replay.compare import TraceError
from sluice.switch.errors import SwitchError
from sluice.switch.targets import TARGETS
from sluice.views import control, metrics

from . import live, page, rules, terminal, top
from .config import init as write_example

_STDOUT = 1
_log = log.logger("control")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Returns the exit status.

    The status is 0: success, 1: failure or refusal, 2: wrong usage, 3: time limit expired, 130: ended by Ctrl-C, 141:
    the reader closed the output (`| head`).
    """
    terminal.prepare()
    options = make_parser().parse_args(arguments)
    proxies.ignore()
    try:
        status = int(options.run(options))
        print(end="", flush=True)
        return status
    except ConfigError as error:
        print(error, file=sys.stderr)
    except (SwitchError, Refused, control.ControlInUse, CaptureError, TraceError) as error:
        print(f"sluice: {error}", file=sys.stderr)
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _is_output_closed():
            return 128 + signal.SIGPIPE
        place = f"{error.filename}: " if error.filename else ""
        print(f"sluice: {place}{error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 1


def _is_output_closed() -> bool:
    """Return whether the reader of standard output has closed it.

    If so, the rest of Python's output buffer is discarded, because the interpreter would otherwise report an error at
    exit.
    """
    poll = select.poll()
    poll.register(_STDOUT, 0)
    if not any(events & select.POLLERR for _, events in poll.poll(0)):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)
    return True


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands and their options."""
    parser = argparse.ArgumentParser(prog="sluice", description=__doc__)
    parser.add_argument("--version", action="version", version=f"sluice {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="drive a switch by a configuration")
    _config_option(run)
    run.add_argument("--target", choices=list(TARGETS), help="kind of switch; default: as the switch reports it")
    run.add_argument(
        "--replace-program",
        action="store_true",
        help="load the program even if the switch runs another version and cannot keep its connections",
    )
    run.add_argument("--trace-file", metavar="FILE", help="append one JSON line per decision")
    run.add_argument("--news-trace", metavar="FILE", help="append a CSV line per decision of flash-crowd control")
    run.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")
    run.add_argument("--log-json", action="store_true", help="log as JSON instead of key=value")
    run.set_defaults(run=_run)

    check = commands.add_parser("check", help="check a configuration, offline")
    _config_option(check)
    check.add_argument("--json", action="store_true", help="as JSON")
    check.set_defaults(run=rules.check)

    match = commands.add_parser("match", help="show which rule of a content service decides a request, offline")
    _config_option(match)
    match.add_argument("--json", action="store_true", help="as JSON")
    rules.add_options(match)
    match.set_defaults(run=rules.match)

    live.add(commands, _config_option)
    page.add(commands, _config_option)
    top.add(commands, _config_option)

    config = commands.add_parser("config", help="create a configuration")
    init = config.add_subparsers(required=True, metavar="COMMAND").add_parser("init", help="write a commented example")
    _config_option(init)
    init.set_defaults(run=write_example)

    completion = commands.add_parser("completion", help="print a completion script for a shell")
    completion.add_argument("shell", choices=shtab.SUPPORTED_SHELLS)
    completion.set_defaults(run=_complete, parser=parser)

    replay = commands.add_parser("replay", help="decide from a capture, offline, as the controller would")
    _config_option(replay)
    command.add_options(replay)
    replay.set_defaults(run=command.replay)
    return parser


def _complete(options: argparse.Namespace) -> int:
    print(shtab.complete(options.parser, options.shell))
    return 0


def _config_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", "-c", metavar="FILE", default=DEFAULT_CONFIG, help="default: %(default)s")


def _run(options: argparse.Namespace) -> int:
    config = load(options.config)
    log.configure(options.log_level, as_json=options.log_json)
    try:
        news_trace = options.news_trace or (config.news.trace_file if config.news else None)
        trace = options.trace_file or config.trace_file
        with asyncio.Runner(loop_factory=WatchedLoop) as runner:
            runner.run(_serve(config, options, trace, news_trace))
    except asyncio.CancelledError:
        return 0
    return 0


async def _serve(
    config: Config, options: argparse.Namespace, trace_file: str | None, news_trace_file: str | None
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
        supervisor = Supervisor()
        controller = Controller(
            config,
            options.config,
            trace,
            _announcer(supervisor),
            news_trace,
            target=options.target,
            may_end_connections=options.replace_program,
            status=supervisor.show,
        )
        loop.add_signal_handler(signal.SIGHUP, lambda: _reload_on_signal(controller))
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            loop.add_signal_handler(number, _ignore_signal, number)  # by default the signal ends the process silently
        await stack.enter_async_context(control.serve(controller, config.control))
        if config.metrics:
            stack.enter_context(metrics.serve(controller, config.metrics.address))
        await stack.enter_async_context(supervisor.watching())
        if config.page:
            await stack.enter_async_context(page.child(options.config))
        with suppress(asyncio.CancelledError):
            await controller.run()


def _ignore_signal(number: signal.Signals) -> None:
    _log.warning("signal without a meaning", extra={"signal": number.name})


_reloads: set[asyncio.Task[None]] = set()


def _reload_on_signal(controller: Controller) -> None:
    task = asyncio.create_task(_reload(controller), name="sighup")
    _reloads.add(task)
    task.add_done_callback(_reloads.discard)


async def _reload(controller: Controller) -> None:
    try:
        await controller.reload()
    except (Refused, ConfigError, SwitchError) as error:
        _log.error("not reloaded", extra={"error": str(error)})


def _announcer(supervisor: Supervisor) -> Callable[[str], None]:
    def announce(line: str) -> None:
        _announce(line)
        supervisor.show(line)

    return announce


def _announce(line: str) -> None:
    try:
        print(line, flush=True)
    except OSError:
        # The reader of the line has closed the pipe. Discard the rest, so that flushing does not fail at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
