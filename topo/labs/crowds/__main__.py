"""The flash crowds of Chen & Heidemann: runs, their figures, and checks against the goals.

`python -m topo.labs.crowds` as root.  $SWITCH chooses the switch: embedded (default) or bmv2.  A run with
complete records is not repeated.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from topo.labs.crowds.programme import Planned, compressed, one_run, programme
from topo.labs.crowds.run import Run, conditions, is_done, make_run, read_records, static_limit
from topo.labs.crowds.summary import Result, checks, summary, table
from topo.plan.crowd.measures import Records, figures
from topo.plan.crowd.scenarios import HOT_SPOT, NEWS, NONE, PRODUCTION, SCENARIOS, STATIC, VARIANTS, Settings
from topo.plan.crowd.traffic import logged_requests
from topo.plan.requests import LogFormatError
from topo.results import results_directory
from topo.testbed import REPOSITORY
from topo.testbed.errors import SetupError
from topo.testbed.interrupts import run_command
from topo.testbed.nodes import switch_kind

PROGRESS_EVERY_S = 15.0
K_MAX = 8.0
DRAWN = (NONE, NEWS, HOT_SPOT, PRODUCTION)


class Results:
    """The results directory: raw records of runs below `runs/`, and the figures, tables and pictures computed from the
    records."""

    def __init__(self, output: Path, kind: str, say: Callable[[str], None]) -> None:
        self.output = output
        self._kind = kind
        self._say = say
        self._planned: Sequence[str] = ()
        self._records: dict[str, Records] = {}
        self.results: dict[str, dict[str, Result]] = {}

    def make(self, runs: Sequence[Planned]) -> None:
        """Make all runs that have no complete records, and write the results after each run."""
        self._planned = [planned.name for planned in runs]
        for number, planned in enumerate(runs, 1):
            run = self._settled(planned)
            directory = self.output / "runs" / planned.name
            heading = f"[{number}/{len(runs)}] {planned.name}"
            if run.static_per_s is not None:
                heading += f" ({run.static_per_s:.0f}/s)"
            if is_done(run, self._kind, directory):
                self._say(f"{heading}: there already")
            else:
                rest = sum(later.seconds for later in runs[number:])
                make_run(run, self._kind, directory, self._progress(heading, rest))
            self._take(planned, directory)
            self._say(f"{heading}: {self.results[planned.scenario.name][planned.variant.name].conditions}")
            self.write()

    def checks(self) -> dict[str, bool]:
        """Return each goal and whether it is reached; a missing run counts as a goal that is not reached."""
        return checks(self.results, self._planned)

    def write(self) -> None:
        """Write summary.json, details.json, checks.json, table.txt and the pictures."""
        # The import of matplotlib takes a second, so it is delayed until the pictures are drawn.
        from topo.labs.crowds.plot import draw  # noqa: PLC0415

        (self.output / "summary.json").write_text(json.dumps(summary(self.results), indent=2) + "\n")
        details = {
            scenario: {name: asdict(result) for name, result in by_variant.items()}
            for scenario, by_variant in self.results.items()
        }
        (self.output / "details.json").write_text(json.dumps(_without_nan(details), indent=2) + "\n")
        (self.output / "checks.json").write_text(json.dumps(self.checks(), indent=2) + "\n")
        (self.output / "table.txt").write_text(table(self.results))
        for scenario, by_variant in self.results.items():
            names = [variant.name for variant in DRAWN if variant.name in by_variant] or list(by_variant)
            if names:
                runs = {name: self._records[f"{scenario}/{name}"] for name in names}
                k = by_variant[names[0]].k
                draw(
                    SCENARIOS[scenario].title,
                    runs,
                    k,
                    [self.output / f"{scenario}.png", self.output / f"{scenario}.svg"],
                )

    def _settled(self, planned: Planned) -> Run:
        static = planned.variant.static_per_s
        if planned.variant.static_from:
            source = self.results.get(planned.scenario.name, {}).get(planned.variant.static_from)
            if source is None:
                raise SetupError(
                    f"{planned.name} takes its limit from a run of {planned.variant.static_from} made together with it:"
                    f" `make news` makes both; or choose a limit yourself: {', '.join(other.name for other in STATIC)}"
                )
            static = static_limit(planned.variant, source.crowd.limit_mean_per_s, source.k)
        return Run(planned.scenario, planned.variant, planned.settings, static)

    def _take(self, planned: Planned, directory: Path) -> None:
        records = self._records[planned.name] = read_records(directory)
        self.results.setdefault(planned.scenario.name, {})[planned.variant.name] = Result(
            planned.settings.k,
            records.period_s,
            figures(records, records.window()),
            figures(records, records.quiet()),
            planned.settings.ramp_s,
            conditions(directory),
        )

    def _progress(self, heading: str, rest: float) -> Callable[[float], None]:
        printed_s = 0.0
        self._say(f"{heading}: building the network")

        def tick(left: float) -> None:
            nonlocal printed_s
            if time.monotonic() - printed_s >= PROGRESS_EVERY_S:
                printed_s = time.monotonic()
                self._say(f"{heading}: {left:.0f} s left, about {(left + rest) / 60:.0f} min in all")

        return tick


def _without_nan(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_nan(entry) for name, entry in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def require_log(runs: Sequence[Planned]) -> None:
    """Raise LogFormatError if the request log of a run is not readable or too short; called before a network is
    built."""
    for run in runs:
        for _ in logged_requests(run.settings):
            pass


def compression(text: str) -> float:
    """Parse the time compression k; raise ArgumentTypeError if it is no number or out of range."""
    try:
        k = float(text)
    except ValueError:
        k = math.nan
    if not 0 < k <= K_MAX:
        raise argparse.ArgumentTypeError(f"{text!r}: time is compressed by a number above 0 and at most {K_MAX:g}")
    return k


def part_lost(text: str) -> float:
    """Parse a percentage and return it as a share; raise ArgumentTypeError if it is no number or out of range."""
    try:
        percent = float(text)
    except ValueError:
        percent = math.nan
    if not 0 <= percent < 100:
        raise argparse.ArgumentTypeError(f"{text!r}: of the packets, a percentage of at least 0 and below 100 is lost")
    return percent / 100


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line, and return its options."""
    parser = argparse.ArgumentParser(prog="python -m topo.labs.crowds", description=__doc__)
    parser.add_argument("--output", type=Path, help="directory of the results (default: results/news, bmv2: news-bmv2)")
    parser.add_argument("--quick", action="store_true", help="one scenario, three variants")
    parser.add_argument("--scenario", choices=SCENARIOS, help="one run only: of this scenario")
    parser.add_argument("--variant", choices=VARIANTS, default=PRODUCTION.name, help="of that one run")
    parser.add_argument("--hour", action="store_true", help="that one run is an hour long (before compression)")
    parser.add_argument("--k", type=compression, help=f"compression of time, at most {K_MAX:g}")
    parser.add_argument(
        "--log",
        type=Path,
        metavar="FILE",
        help="that one run replays a World Cup 98 binary log (.gz too), compressed, in place of the synthesised crowd",
    )
    parser.add_argument(
        "--region", type=int, choices=range(8), help="of that log, the requests of one site only (default: of all)"
    )
    parser.add_argument(
        "--onset",
        type=float,
        metavar="S",
        default=Settings().log_onset_s,
        help="when the crowd begins in that log, in seconds from its first request (default: %(default)g)",
    )
    parser.add_argument(
        "--loss",
        type=part_lost,
        metavar="PERCENT",
        help="of that one run's packets towards the clients, so many are lost behind the bottleneck; by netem only",
    )
    options = parser.parse_args(arguments)
    for name in ("log", "loss"):
        if getattr(options, name) and not options.scenario:
            parser.error(f"--{name} is for one run: give a --scenario, too")
    return options


def chosen_settings(options: argparse.Namespace) -> Settings:
    """Return the settings with the changes from the command line."""
    settings = Settings()
    if options.k:
        settings = replace(settings, k=options.k)
    if options.log:
        settings = replace(
            settings, log=str(options.log.absolute()), log_onset_s=options.onset, log_region=options.region
        )
    return replace(settings, loss=options.loss) if options.loss else settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    options = parse_options(arguments)
    started = time.monotonic()

    def say(line: str) -> None:
        print(line, flush=True)

    def work() -> int:
        kind = switch_kind()
        settings = chosen_settings(options)
        runs = programme(settings, quick=options.quick)
        if options.scenario:
            runs = [one_run(SCENARIOS[options.scenario], VARIANTS[options.variant], settings, hour=options.hour)]
        if options.log:
            require_log(runs)
        if not options.k:
            runs = [compressed(run, kind) for run in runs]
        minutes = sum(run.seconds for run in runs) / 60
        factors = " or ".join(f"{k:g}" for k in sorted({run.settings.k for run in runs}))
        say(f"sluice news: switch {kind}, time compressed by {factors}, {len(runs)} runs, {minutes:.0f} min")
        output = options.output or results_directory("news-quick" if options.quick else "news", kind)
        output.mkdir(parents=True, exist_ok=True)
        results = Results(output, kind, say)
        results.make(runs)
        say("\n" + table(results.results))
        verdicts = results.checks()
        for name, holds in verdicts.items():
            say(f"  {'ok    ' if holds else 'FAILED'}  {name}")
        say(f"\nwritten to {output}; {(time.monotonic() - started) / 60:.1f} min")
        return 0 if all(verdicts.values()) else 1

    place = options.output or REPOSITORY / "results"
    return run_command("news", work, place, remaining="complete runs are kept", errors=(LogFormatError,))


if __name__ == "__main__":
    sys.exit(main())
