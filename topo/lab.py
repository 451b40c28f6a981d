"""The lab with Mininet's prompt: the demo's network with a running controller.

`python -m topo.lab [--record FILE.pcap] [--content | --resources]` as root.  $SWITCH chooses the switch: embedded
(default), bmv2 or tofino.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from topo.labs.content import HINT as CONTENT_HINT
from topo.labs.content import ContentLab
from topo.labs.page import start_page
from topo.labs.resources import HINT as RESOURCES_HINT
from topo.labs.resources import ResourcesLab
from topo.labs.web import Lab
from topo.labs.webservers import PAGE
from topo.measure.capture import Recorder
from topo.measure.httperf import Httperf
from topo.plan.load import Load
from topo.plan.network import Balance
from topo.testbed.controller import CONFIGURATION
from topo.testbed.errors import SetupError
from topo.testbed.interrupts import Interrupted, interruptible
from topo.testbed.mininet import CLI
from topo.testbed.nodes import SWITCHES, switch_kind

BALANCE = Balance("production", 2.0, 10.0)
"""The balancing of `sluice run`, except for the times in seconds: the period T is a fifth of the default and the window
a twentieth."""

RATE_PER_S = 130.0

HINT = """\
Try:  load {rate:g} 120    {rate:g} connections per second for 120 s from c1, in the background
      break s3        load server s3 with stress, and after a few seconds:
      status          the ratios: they move away from s3
      mend s3         ... and come back
      c1 curl -so /dev/null -w '%{{http_code}} %{{time_total}} s\\n' http://10.0.0.100/page
      c1 ping -c 3 10.0.3.1        h1, a host behind the switch that is no server
`help` lists all commands, `exit` ends the lab and removes everything."""


def parse_load(line: str) -> Load:
    """Parse `RATE SECONDS`; raise SetupError if the line has another format, or a value is out of range."""
    try:
        rate, seconds = (float(word) for word in line.split())
    except ValueError:
        raise SetupError("usage: load RATE SECONDS, for example: load 130 120") from None
    if not (0 < rate <= 10_000 and 0 < seconds <= 3600):
        raise SetupError("load: RATE is above 0 and at most 10,000 per second, SECONDS at most 3,600")
    return Load(rate, seconds)


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line, and return its options."""
    parser = argparse.ArgumentParser(prog="python -m topo.lab", description="The lab with Mininet's prompt.")
    parser.add_argument(
        "--record",
        type=_capture_file,
        metavar="FILE.pcap",
        help="record all of the switch's ports, for `sluice replay`; configuration and decisions go beside it",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--content", action="store_true", help="content switching: two agents, three groups of servers")
    what.add_argument("--resources", action="store_true", help="one server, whose send buffers are shared")
    return parser.parse_args(arguments)


def _capture_file(text: str) -> Path:
    path = Path(text)
    if path.suffix != ".pcap":
        raise argparse.ArgumentTypeError(f"{text} does not end in .pcap; .yaml and .jsonl of that name go beside it")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no directory {path.parent}")
    return path


def record(lab: Lab, capture: Path) -> None:
    """Capture a lab's packets until its end; then copy its configuration and the controller's decisions beside the
    capture, and print the command that replays it.

    The capture begins with the lab, because the controller's decisions depend on all earlier packets.
    """
    recorder = Recorder(lab.switch.pid, capture)

    def end() -> None:
        try:
            shutil.copy(lab.directory / CONFIGURATION, capture.with_suffix(".yaml"))
            shutil.copy(lab.controller.trace, capture.with_suffix(".jsonl"))
            recorder.stop()
        finally:
            recorder.close()
        program = Path(sys.executable).parent / "sluice"
        configuration, decisions = (capture.with_suffix(suffix) for suffix in (".yaml", ".jsonl"))
        print(shlex.join(map(str, [program, "replay", capture, "--config", configuration, "--trace", decisions])))

    lab.at_end(end)


class LabCLI(CLI):
    """Mininet's prompt with the lab's commands."""

    prompt = "sluice-lab> "

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._loads: list[Httperf] = []
        super().__init__(lab.net)

    def do_break(self, line: str) -> None:
        "break SERVER: load a server with stress."
        self._server(line, "break", self._lab.break_server)

    def do_mend(self, line: str) -> None:
        "mend SERVER: take the load off again."
        self._server(line, "mend", self._lab.mend_server)

    def do_status(self, line: str) -> None:
        "status: what the controller sees and does."
        command = self._lab.controller.status_command()
        done = subprocess.run([*command, *line.split()], capture_output=True, text=True, check=False)
        print(done.stdout + done.stderr, end="")

    def do_load(self, line: str) -> None:
        "load RATE SECONDS: connections at exponential intervals from c1, in the background."
        self._report_ended()
        try:
            load = parse_load(line)
            self._loads.append(self._lab.start_load(load, PAGE))
        except SetupError as error:
            print(error)
            return
        print(f"{load.rate_per_s:g} connections/s for {load.seconds:g} s; the result follows a later command")

    def postcmd(self, stop: bool, line: str) -> bool:
        """Print the results of loads that have ended."""
        self._report_ended()
        return super().postcmd(stop, line)

    def _server(self, line: str, verb: str, act: Callable[[str], None]) -> None:
        name = line.strip()
        names = self._lab.pool.names
        if name not in names:
            print(f"usage: {verb} SERVER, one of {', '.join(names)}")
            return
        act(name)

    def _report_ended(self) -> None:
        for load in [httperf for httperf in self._loads if not httperf.running()]:
            self._loads.remove(load)
            try:
                result = load.result()
            except SetupError as error:
                print(error)
                continue
            print(
                f"load ended: {result.replies} of {result.connections} connections answered, "
                f"mean connect time {result.connect_ms:.1f} ms, {result.timeouts} given up"
            )


def _chosen(options: argparse.Namespace) -> tuple[Lab, str]:
    """Return the lab that the options select, and hints for its prompt."""
    kind = switch_kind()
    if options.content:
        return ContentLab(kind), CONTENT_HINT
    if options.resources:
        return ResourcesLab(kind), RESOURCES_HINT
    return Lab(kind, BALANCE), HINT.format(rate=RATE_PER_S * SWITCHES[kind].load_share)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    options = parse_options(arguments)
    # Ctrl-C at the prompt ends a command, not the lab; before the prompt appears, it ends the lab (KeyboardInterrupt).
    with interruptible((signal.SIGTERM, signal.SIGHUP)):
        try:
            chosen, hint = _chosen(options)
            with chosen as lab:
                if options.record is not None:
                    record(lab, options.record)
                start_page(lab, print)
                print(hint, flush=True)
                LabCLI(lab)
        except (SetupError, OSError) as error:
            print(f"sluice lab: {error}", file=sys.stderr)
            return 1
        except Interrupted as interrupted:
            print(f"sluice lab: ended by {interrupted}; everything it started is gone", file=sys.stderr)
            return 128 + interrupted.number
        except KeyboardInterrupt:
            print("sluice lab: interrupted; everything it started is gone", file=sys.stderr)
            return 128 + signal.SIGINT
    print("everything the lab started is gone")
    return 0


if __name__ == "__main__":
    sys.exit(main())
