"""Tofino's model and driver from an installation of open-p4studio, controlled through sluice's P4Runtime gateway."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from topo.testbed import REPOSITORY
from topo.testbed.errors import SetupError
from topo.testbed.namespaces import interface_packets, lay, listening
from topo.testbed.processes import Process, before_all_else

from .kind import Endpoints, Kind

GATEWAY = REPOSITORY / "target/release/sluice-tofino"
MODEL, DRIVER = "tofino-model", "bf_switchd"
INSTALLATION = "SDE_INSTALL"

CPU_PORT = 64
"""Number of the Ethernet port for a CPU. The port of PCIe (320) cannot be used, because the gateway cannot add it."""
SPEED = "10G"
"""The speed configured for every port; the model ignores the speed."""
BF_RUNTIME_PORT, STATUS_PORT = 50052, 7777
LOADED_S = 120.0
"""Seconds within which the driver must load the program into the model; until then the driver answers no request."""
ANSWERED = "the driver answers"
"""Text in the gateway's log by which the gateway reports that the driver has answered."""
LATE, ATTEMPTS = "ASSERTION FAILED", 3
"""LATE: text in the driver's log after the model has answered too late on a busy machine; such a driver serves
requests, but no packet passes the model. ATTEMPTS: number of attempts to start model and driver."""
HUGE_PAGES = Path("/proc/sys/vm/nr_hugepages")
LEAST_HUGE_PAGES = 196
"""Least number of huge pages (2 MB each) that the driver needs for its DMA pools."""


def installation() -> Path:
    """Return the folder of open-p4studio's installation. Raises SetupError with the name of the missing part."""
    named = os.environ.get(INSTALLATION)
    if not named:
        raise SetupError(
            f"SWITCH=tofino: ${INSTALLATION} is not set; name an installation of open-p4studio, whose bin/ has {MODEL}"
            f" and {DRIVER} (docs/guide/tofino.md)"
        )
    missing = [name for name in (MODEL, DRIVER) if not (Path(named) / "bin" / name).is_file()]
    if missing:
        raise SetupError(f"SWITCH=tofino: {named}/bin, of ${INSTALLATION}, has no {' and no '.join(missing)}")
    return Path(named).resolve()


def find() -> Path:
    """Return the path of the gateway's release build. Raises SetupError if the gateway or the installation is
    missing."""
    installation()
    if not GATEWAY.is_file():
        raise SetupError(f"{GATEWAY} is not there: cargo build --release, or run by make")
    return GATEWAY


@contextmanager
def _huge_pages() -> Generator[None]:
    """Reserve the huge pages that the driver needs; restore the earlier number when the context ends."""
    before = int(HUGE_PAGES.read_text())
    if before >= LEAST_HUGE_PAGES:
        yield
        return
    HUGE_PAGES.write_text(str(LEAST_HUGE_PAGES))
    try:
        if int(HUGE_PAGES.read_text()) < LEAST_HUGE_PAGES:
            raise SetupError(f"{HUGE_PAGES}: the kernel has no {LEAST_HUGE_PAGES} huge pages, which {DRIVER} needs")
        yield
    finally:
        HUGE_PAGES.write_text(str(before))


def configuration(pipeline: Path) -> str:
    """Return the driver's configuration: the one that p4c wrote into the program's folder, with absolute paths. Raises
    SetupError if p4c's configuration is missing."""
    path = pipeline / "sluice.conf"
    if not path.is_file():
        path = next(pipeline.glob("*.conf"), path)  # the folder contains a program with another name
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise SetupError(f"{path}: {error}; `make p4 TARGET=tofino` compiles the program there") from error
    content["chip_list"] = [{"id": "asic-0", "chip_family": "tofino", "instance": 0, "pcie_sysfs_prefix": ""}]
    for device in content["p4_devices"]:
        # Without a board the driver needs no platform manager.
        device.pop("agent0", None)
        for program in device["p4_programs"]:
            program["bfrt-config"] = str(pipeline / program["bfrt-config"])
            for pipe in program["p4_pipelines"]:
                pipe |= {name: str(pipeline / pipe[name]) for name in ("context", "config", "path")}
    return json.dumps(content, indent=1)


@dataclass(frozen=True)
class Tofino(Kind):
    """The kind Tofino: the gateway is the switch's program; model and driver are its helper programs."""

    def command(
        self,
        binary: Path,
        ports: Mapping[int, str],
        endpoints: Endpoints,
        *,
        program: Sequence[str] = (),
        device_id: int = 1,
        target: Sequence[str] = (),
    ) -> list[str]:
        """Return the gateway's command line, after writing the file that sets the speed of each port. The line names no
        interfaces except that of the CPU port, and no P4 program: model and driver receive these."""
        del program, target
        file = endpoints.folder / "ports.toml"
        file.write_text("".join(f'[ports.{port}]\nspeed = "{SPEED}"\n' for port in sorted({*ports, CPU_PORT})))
        words = [str(binary), "--grpc-server-addr", endpoints.grpc, "--device-id", str(device_id)]
        words += ["--driver", f"http://127.0.0.1:{BF_RUNTIME_PORT}", "--pipes", "0"]
        words += ["--cpu-port", str(CPU_PORT), "--cpu-interface", f"pt{CPU_PORT}"]
        return [*words, "--ports", str(file.resolve())]

    def await_serving(self, process: Process, endpoints: Endpoints, timeout_s: float) -> None:
        """Return once the gateway serves P4Runtime and the driver has answered the gateway; raise SetupError after
        ``timeout_s`` seconds."""
        super().await_serving(process, endpoints, timeout_s)
        process.await_output(ANSWERED, timeout_s)

    @contextmanager
    def around(
        self, ports: Mapping[int, str], endpoints: Endpoints, pipeline: Path, namespace_pid: int | None = None
    ) -> Generator[None]:
        """Run the model, with a cable for the CPU port, and the driver, with the P4 program, until the context ends."""
        root, folder = installation(), endpoints.folder.resolve()
        interfaces = {**ports, CPU_PORT: _cpu_end(namespace_pid)}
        listed = [{"device_port": number, "if": name} for number, name in sorted(interfaces.items())]
        (folder / "ports.json").write_text(json.dumps({"PortToIf": listed}))
        (folder / "driver.conf").write_text(configuration(pipeline.resolve()))
        libraries = ["env", f"LD_LIBRARY_PATH={root / 'lib'}"]
        model = [*libraries, str(root / "bin" / MODEL), "--no-cli", "-d", "1", "--chip-type", "2"]
        model += ["-f", str(folder / "ports.json"), "--install-dir", str(root), "--log-dir", str(folder)]
        model += ["--logs-disable"]
        driver = [*libraries, str(root / "bin" / DRIVER), "--install-dir", str(root), "--background"]
        driver += ["--conf-file", str(folder / "driver.conf"), "--status-port", str(STATUS_PORT)]
        # Without --skip-port-add the driver would add 256 ports, and read their counters once per second, which takes a
        # second.
        driver += ["--server-listen-local-only", "--skip-port-add"]
        # Once per second the driver reads counters of every queue, and spins until the model answers. Without real-time
        # priority the model would have to wait for the processor on which the driver spins.
        commands = {MODEL: before_all_else(model), DRIVER: driver}
        with _huge_pages():
            started = _started(folder, commands, namespace_pid)
            try:
                yield
            finally:
                _stop(started)


def _cpu_end(namespace_pid: int | None) -> str:
    """Return the model's end of the CPU port's cable. Create the cable if there is none; it stays when the model is
    restarted."""
    if (left := f"sw{CPU_PORT}") in interface_packets(namespace_pid or os.getpid()):
        return left
    (cable,) = lay([CPU_PORT], namespace_pid)
    return cable.switch_end


def _started(folder: Path, commands: Mapping[str, Sequence[str]], namespace_pid: int | None) -> list[Process]:
    """Start model and driver in the namespace of a process (None: of this process), and return them once the driver
    serves. Raises SetupError if they do not start."""
    for _ in range(ATTEMPTS):
        started: list[Process] = []
        try:
            for name, command in commands.items():
                log = folder / f"{name}.log"
                started.append(Process(name, command, log=log, namespace_pid=namespace_pid, directory=folder))
            serving = started[-1]
            serving.await_true("BF Runtime", lambda pid=serving.pid: listening(pid, BF_RUNTIME_PORT), LOADED_S)
            if LATE not in serving.output():
                return started
        except BaseException:
            _stop(started)
            raise
        _stop(started)
    raise SetupError(f"{DRIVER}: {MODEL} answered it too late, {ATTEMPTS} times; is this machine busy?")


def _stop(processes: Sequence[Process]) -> None:
    """End the processes in reverse order."""
    for process in reversed(processes):
        process.stop()


TOFINO = Tofino("tofino", "sluice-tofino", find, folder="tofino")
