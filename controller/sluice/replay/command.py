"""`sluice replay`: what the controller would decide from a capture."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from sluice.config import Config, NewsConfig
from sluice.configload import load

from .against import Comparison, TraceError, compare, first_reading, lines
from .againstnews import NewsComparison, compare_news, first_news_reading, intervals, is_news_trace
from .capture import read_capture
from .replay import Moment, Replay
from .timeline import as_json, draw, line


def add_options(command: argparse.ArgumentParser) -> None:
    """What the command takes beside --config."""
    command.add_argument("capture", metavar="CAPTURE", help="pcap of the switch's ports, or of those to its servers")
    command.add_argument(
        "--start", type=float, metavar="S", help="first reading, seconds since the epoch; default: the first segment"
    )
    command.add_argument(
        "--trace",
        metavar="FILE",
        help="a live trace, of --trace-file or news: trace_file: read when it did, then hold against it",
    )
    command.add_argument("--plot", metavar="FILE", help="draw what was seen and decided (.png, .svg)")
    command.add_argument("--json", action="store_true", help="a JSON line per decision, as a trace has it")


def replay(options: argparse.Namespace) -> int:
    """Run it; the exit status: 1 when the decisions are not those of the trace."""
    config = load(options.config)
    trace = None if options.trace is None else Path(options.trace).read_text(encoding="utf-8")
    start_s = options.start if trace is None else _first_reading(config, trace)
    run = Replay(config)
    moments: list[Moment] = []
    late_s = [] if trace is None else _decided(trace)
    for moment in run.run(read_capture(options.capture), start_s, late_s):
        moments.append(moment)
        begin = start_s if start_s is not None else moments[0].time_s
        print(json.dumps(as_json(run.world, moment)) if options.json else line(run.world, moment, begin), flush=False)
    begin = start_s if start_s is not None else moments[0].time_s if moments else 0.0
    if options.plot is not None:
        draw(run.world, moments, begin, Path(options.plot))
    if not options.json:
        print(f"{options.capture}: {run.segments:,} segments, {len(moments)} decisions")
    if trace is None:
        return 0
    found = _compare(config, run, moments, trace)
    if not options.json:
        print(found.sentence)
    return 0 if found.same else 1


def _first_reading(config: Config, trace: str) -> float:
    return first_news_reading(trace, _news(config).interval_s) if is_news_trace(trace) else first_reading(trace)


def _decided(trace: str) -> list[float]:
    """When, in order."""
    times = [one.time_s for one in intervals(trace)] if is_news_trace(trace) else [one["time"] for one in lines(trace)]
    return sorted(float(time) for time in times)


def _compare(config: Config, run: Replay, moments: list[Moment], trace: str) -> Comparison | NewsComparison:
    if is_news_trace(trace):
        return compare_news(moments, trace, _news(config).interval_s)
    return compare(run.world, moments, trace)


def _news(config: Config) -> NewsConfig:
    """Raises TraceError for a configuration without flash-crowd control."""
    if config.news is None:
        raise TraceError("trace, line 1: this is flash-crowd control's, and the configuration has no `news:`")
    return config.news
