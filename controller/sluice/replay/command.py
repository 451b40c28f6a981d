"""The command `sluice replay`: shows the controller's decisions for the traffic in a capture."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from sluice.config.load import load
from sluice.config.model import NewsConfig
from sluice.loops.world import World

from .capture import LONGEST_GAP_S, CaptureError, Segment, read_capture
from .compare import Comparison, TraceError, compare, decisions, first_reading
from .comparenews import NewsComparison, compare_news, first_news_reading, is_news_trace, live_times
from .driver import LiveTimes
from .replay import Moment, Replay
from .timeline import PLOTS, as_json, draw, line

_ROUNDING_S = 0.001
"""The error, in seconds, of times that users copy from the output: the output is rounded."""


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the command's options other than --config."""
    command.add_argument(
        "capture", metavar="CAPTURE", help="pcap or pcapng of the switch's ports, or of those to its servers"
    )
    command.add_argument(
        "--start",
        type=_seconds,
        metavar="S",
        help="first reading, seconds since the epoch, within the capture; default: the first segment",
    )
    command.add_argument(
        "--trace",
        metavar="FILE",
        help="a live trace, of --trace-file or news: trace_file: decide at its times, and compare with it",
    )
    command.add_argument(
        "--plot", type=_plot_file, metavar="FILE", help=f"draw measurements and decisions ({', '.join(PLOTS)})"
    )
    command.add_argument("--json", action="store_true", help="a JSON line per decision, as in a trace")


def _seconds(text: str) -> float:
    """Parse a number more strictly than `float` does: no digits of other scripts, underscores or spaces."""
    try:
        if re.fullmatch("[-+.0-9a-z]+", text):
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a time; write seconds since the epoch, such as 1700000000.25")


def _plot_file(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() not in PLOTS:
        raise argparse.ArgumentTypeError(f"{text} does not end in {' or '.join(PLOTS)}")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no directory {path.parent}")
    return path


def replay(options: argparse.Namespace) -> int:
    """Run the command. Returns the exit status: 1 if the decisions differ from those of the trace, or none of these
    could be compared; otherwise 0."""
    run = Replay(load(options.config))
    segments = read_capture(options.capture, _warn)
    trace, start_s, live = None, options.start, LiveTimes()
    if options.trace is not None:
        trace = _read_trace(options.trace)
        start_s, live = _first_reading(run.world, trace), _decided(run.world, trace)
        segments = _within_capture(segments, start_s, LONGEST_GAP_S, f"{options.capture}: the trace's first reading")
    elif start_s is not None:
        segments = _within_capture(segments, start_s, _ROUNDING_S, f"{options.capture}: --start")
    moments: list[Moment] = []
    for moment in run.run(segments, start_s, live):
        moments.append(moment)
        print(json.dumps(as_json(run.world, moment)) if options.json else line(run.world, moment, run.first_reading_s))
    if not run.segments:
        raise CaptureError(
            f"{options.capture}: no TCP segment in it is to or from a service or server of {options.config}; give the"
            " configuration of the switch that it was recorded at"
        )
    if not run.at_servers:
        _warn(
            f"{options.capture}: no TCP segment in it is to or from a server, as if the switch had forwarded nothing;"
            " record on all of its ports, or on those to the servers"
        )
    if options.plot is not None:
        draw(run.world, moments, run.first_reading_s, options.plot)
    if not options.json:
        print(f"{options.capture}: {run.segments:,} segments, {len(moments)} decisions")
    if trace is None:
        return 0
    comparison = _compare(run.world, moments, trace)
    if not options.json:
        print(comparison.sentence)
    return 0 if comparison.agrees else 1


def _warn(text: str) -> None:
    print(f"sluice: {text}", file=sys.stderr)


def _within_capture(segments: Iterable[Segment], start_s: float, early_s: float, start_name: str) -> Iterator[Segment]:
    """Yield the segments of a capture whose first reading is at ``start_s``.

    Raises CaptureError if that is more than ``early_s`` seconds before the first segment or after the last one. The
    error comes only after the last segment, because it names the times of the first and the last one.
    """
    first_s, last_s = math.inf, -math.inf
    for segment in segments:
        first_s, last_s = min(first_s, segment.time_s), max(last_s, segment.time_s)
        if start_s >= first_s - early_s:
            yield segment
    if not first_s - early_s <= start_s <= last_s:
        raise CaptureError(
            f"{start_name} {start_s} is not within the capture, which is of {first_s:.3f} to {last_s:.3f}"
        )


def _read_trace(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TraceError(f"{file}: byte {error.start}: not a trace; give the file of --trace-file") from error


def _first_reading(world: World, trace: str) -> float:
    if is_news_trace(trace):
        return first_news_reading(trace, _news(world).interval_s)
    return first_reading(decisions(world, trace))


def _decided(world: World, trace: str) -> LiveTimes:
    if is_news_trace(trace):
        return live_times(trace)
    services: dict[str, list[float]] = {}
    for decision in sorted(decisions(world, trace), key=lambda decision: decision.time_s):
        services.setdefault(decision.service, []).append(decision.time_s)
    return LiveTimes(services)


def _compare(world: World, moments: list[Moment], trace: str) -> Comparison | NewsComparison:
    if is_news_trace(trace):
        return compare_news(moments, trace, _news(world).interval_s)
    return compare(world, moments, decisions(world, trace))


def _news(world: World) -> NewsConfig:
    """Return the options of flash-crowd control. Raises TraceError if the configuration has none."""
    if world.config.news is None:
        raise TraceError("trace, line 1: this is flash-crowd control's, and the configuration has no `news:`")
    return world.config.news
