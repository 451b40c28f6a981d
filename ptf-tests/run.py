"""Run the packet tests: `run.py [--switch embedded|bmv2|tofino] [tests]`, as root.

The runner makes a network namespace with a cable for each port, starts the switch there, runs ptf and prints which
tests passed. A test is named `module.Class`; `module` means all tests of a module. Logs are written to
results/ptf/SWITCH/. With `--grpc` and `--port-map` the tests use a switch that already runs, such as Tofino's model
(ptf-tests/README.md).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "ptf-tests"
sys.path[:0] = [str(ROOT), str(ROOT / "controller"), str(HERE)]

from harness import portmap, results, targets  # noqa: E402 (needs the path)
from sluice.switch.errors import SwitchError  # noqa: E402
from sluice.switch.pipeline import load  # noqa: E402
from sluice.switch.targets import TARGETS  # noqa: E402

from topo.results import program  # noqa: E402
from topo.testbed import namespaces  # noqa: E402
from topo.testbed.errors import SetupError  # noqa: E402
from topo.testbed.processes import with_parent  # noqa: E402
from topo.testbed.switches import KINDS  # noqa: E402

PORTS = [1, 2, 3, 4, 5]
PIPELINE = ROOT / "p4src" / "build"
LOGS = ROOT / "results" / "ptf"
QUEUE = 4096
"""Number of frames that ptf queues for a test on each port."""


def arguments() -> argparse.Namespace:
    """Parse the command line and the environment."""
    parser = argparse.ArgumentParser(prog="ptf-tests/run.py", description=(__doc__ or "").split("\n", maxsplit=1)[0])
    default = os.environ.get("SWITCH", "embedded")
    parser.add_argument("--switch", choices=[*KINDS], default=default, help="default: $SWITCH or embedded")
    parser.add_argument("--pipeline", type=Path, help="folder of the program and its P4Info; default: the target's own")
    parser.add_argument("--grpc", metavar="ADDRESS", help="P4Runtime of a switch that already runs; with --port-map")
    parser.add_argument(
        "--port-map", type=Path, metavar="FILE", help="lines of that switch's port and an interface here"
    )
    parser.add_argument("--device-id", type=int, default=targets.DEVICE_ID, help="of that switch; default: %(default)s")
    parser.add_argument("--thrift", metavar="ADDRESS", help="of that switch, where it is BMv2")
    parser.add_argument("--target", choices=[*TARGETS], help="profile of that switch; default: one for the program")
    parser.add_argument("--list", action="store_true", help="name the tests and end")
    parser.add_argument("tests", nargs="*", help="module or module.Class; default: all")
    options = parser.parse_args()
    if options.switch not in KINDS:  # argparse does not check defaults
        parser.error(f"SWITCH={options.switch}: choose {' or '.join(KINDS)}")
    if options.switch == "tofino" and options.grpc is None:
        options.target = options.target or options.switch
    options.pipeline = options.pipeline or PIPELINE / KINDS[options.switch].folder
    if (options.grpc is None) != (options.port_map is None):
        parser.error("--grpc and --port-map go together: a switch that already runs, and where its ports lead")
    return options


@contextmanager
def log_folder(switch: str) -> Generator[Path]:
    """Yield a new folder for the logs of this run; when the run ends, the folder replaces results/ptf/SWITCH.

    Logs of different runs therefore do not mix.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    running = Path(tempfile.mkdtemp(prefix=f".{switch}-", dir=LOGS))
    try:
        yield running
    finally:
        shutil.rmtree(LOGS / switch, ignore_errors=True)
        running.rename(LOGS / switch)


def ptf_command(options: argparse.Namespace) -> list[str]:
    """Return the part of ptf's command line that selects the tests."""
    script = Path(sys.executable).with_name("ptf")
    return [sys.executable, str(script), "--test-dir", str(HERE / "stages"), *options.tests]


def environment(outcome: Path | None = None) -> dict[str, str]:
    """Return an environment in which ptf finds the harness, and the harness writes the tests' outcomes to `outcome`.

    None: the harness records no outcomes.
    """
    search_path = os.pathsep.join([str(HERE), str(ROOT / "controller"), str(ROOT)])
    extra = {results.VARIABLE: str(outcome)} if outcome else {}
    return {**os.environ, "PYTHONPATH": search_path, "PYTHONDONTWRITEBYTECODE": "1", **extra}


def run(options: argparse.Namespace, logs: Path) -> int:
    """Run the tests; return the number of failures, which is at least 1 if ptf itself failed."""
    if options.grpc is not None:
        switch = targets.Given(options.grpc, options.device_id, options.thrift)
        return summary(logs, ptf(options, logs, switch, portmap.read(options.port_map)))
    namespaces.enter_new()
    cables = namespaces.lay(PORTS)
    with targets.running(options.switch, cables, logs / "switch.log", options.pipeline) as switch:
        code = ptf(options, logs, switch, [(cable.port, cable.test_end) for cable in cables])
        last_output = switch.process.tail() if switch.process.exit_code() is not None else ""
    return summary(logs, code, last_output)


def ptf(options: argparse.Namespace, logs: Path, switch: targets.Given, ports: list[tuple[int, str]]) -> int:
    """Run ptf against a running switch with its ports in the order of the plan; return ptf's exit status."""
    command = ptf_command(options)
    for port, interface in ports:
        command += ["--interface", f"{port}@{interface}"]
    parameters = {
        "address": switch.address,
        "device_id": switch.device_id,
        "pipeline": str(options.pipeline.resolve()),
        "ports": [port for port, _ in ports],
        **({"target": options.target} if options.target else {}),
        **({"thrift": switch.thrift} if switch.thrift else {}),
    }
    command += ["--platform", "eth", "--qlen", str(QUEUE), "--log-file", str(logs / "ptf.log"), "--quiet"]
    command += ["--socket-recv-size", "10240"]
    command += ["--test-params", ";".join(f"{name}={value!r}" for name, value in parameters.items())]
    words = [*with_parent(), *command]
    return subprocess.run(words, env=environment(logs / results.OUTCOMES), cwd=logs, check=False).returncode


def summary(logs: Path, code: int, last_output: str = "") -> int:
    """Print the outcomes, and the last output of a switch that has ended; return the number of failures."""
    outcome = logs / results.OUTCOMES
    lines = [json.loads(line) for line in outcome.read_text().splitlines()] if outcome.exists() else []
    number = {kind: sum(line["outcome"] == kind for line in lines) for kind in ("passed", "failed", "skipped")}
    for line in lines:
        if line["outcome"] == "failed":
            print(f"FAILED {line['test']}")
    if last_output:
        print(f"the switch has ended; its last output:\n{last_output}")
    if (code or last_output) and not number["failed"]:
        number["failed"] = 1
    skipped = f", {number['skipped']} skipped" if number["skipped"] else ""
    print(f"{number['passed']} passed, {number['failed']} failed{skipped}")
    return number["failed"]


def interrupted(_number: int, _frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, so that SIGTERM ends the run in the same way as Ctrl-C."""
    raise KeyboardInterrupt


def main() -> int:
    """Run the tests; return the exit status, which is 0 if every test passed."""
    options = arguments()
    if options.list:
        # The log is discarded, but not to /dev/null: ptf replaces its log file by a new one, even if it is a device.
        with tempfile.TemporaryDirectory(prefix="sluice-ptf-") as folder:
            words = [*ptf_command(options), "--list-test-names", "--log-file", f"{folder}/ptf.log"]
            return subprocess.run(words, env=environment(), check=False).returncode
    try:
        load(options.pipeline, TARGETS[options.target] if options.target else None)
    except SwitchError as error:
        print(f"ptf: {error}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, interrupted)
    try:
        with log_folder("given" if options.grpc else options.switch) as logs:
            results.describe(logs, options.tests, program("ptf-tests"))
            return 1 if run(options, logs) else 0
    except (SetupError, portmap.PortMapError, FileNotFoundError) as error:
        print(f"ptf: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("ptf: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
