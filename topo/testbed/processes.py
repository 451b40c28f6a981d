"""Processes: started in a namespace and a cgroup, awaited, stopped by pid.

Every process is the leader of its own session, so a Ctrl-C at the terminal reaches only the parent, which then stops
its processes in order. If the parent is killed, the kernel ends its processes by a signal (`with_parent`). Start
processes from the main thread only, because the kernel sends the signal when the thread that started the process ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

from topo.testbed.errors import SetupError

POLL_S = 0.02
"""Seconds between two evaluations of an awaited condition."""
REALTIME_PRIORITY = 1
"""The lowest real-time priority, which precedes every ordinary process of any niceness."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def await_true(what: str, condition: Callable[[], bool], timeout_s: float) -> None:
    """Return once `condition` returns True; raise SetupError with the text `what` after `timeout_s` seconds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise SetupError(f"{what}: not so after {timeout_s:g} s")
        time.sleep(POLL_S)


def with_parent(signal_name: str = "KILL") -> list[str]:
    """Return the prefix of a command line whose command ends together with this process.

    setpriv requests the kernel to send the signal when the parent ends (prctl(2)). If the parent ends before the
    request, the kernel sends no signal. The shell therefore exits if it finds another parent after the request.
    """
    check = '[ "$PPID" = "$0" ] || exit 1; exec "$@"'
    return ["setpriv", "--pdeathsig", signal_name, "sh", "-c", check, str(os.getpid())]


_REALTIME = ["chrt", "--rr", str(REALTIME_PRIORITY)]


@cache
def _realtime_allowed() -> bool:
    return subprocess.run([*_REALTIME, "true"], capture_output=True, check=False).returncode == 0


def before_all_else(argv: Sequence[str]) -> list[str]:
    """Return the command line that runs `argv`, and its child processes, with real-time priority (round robin,
    SCHED_RR).

    Switches have this priority because a real switch does not share processors with servers. If real-time priority is
    not permitted (a container without CAP_SYS_NICE), the result is `argv` itself.
    """
    return [*(_REALTIME if _realtime_allowed() else []), *argv]


def command_in(
    argv: Sequence[str],
    *,
    namespace_pid: int | None = None,
    cgroup_procs: Sequence[Path] = (),
    cores: Collection[int] = (),
) -> list[str]:
    """Return the command line that runs `argv` in the namespaces of a process, in a cgroup, and on certain processors.

    The command joins the cgroup by each of the files `cgroup_procs`, before it enters the namespaces, in which the
    cgroup file systems may be invisible. Without `cores` it runs on the processors of the process that starts it.
    """
    command = with_parent("TERM")
    if namespace_pid is not None:
        command += ["mnexec", "-a", str(namespace_pid)]
    command += [*(["taskset", "--cpu-list", ",".join(map(str, sorted(cores)))] if cores else []), *argv]
    for procs in cgroup_procs:
        command = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(procs), *command]
    return command


class Process:
    """A running program. Its standard output and error are written to the file `log`, or are those of this process."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log: Path | None,
        namespace_pid: int | None = None,
        cgroup_procs: Sequence[Path] = (),
        cores: Collection[int] = (),
        directory: Path | None = None,
    ) -> None:
        self.name = name
        self.log = log or Path(os.devnull)
        command = command_in(argv, namespace_pid=namespace_pid, cgroup_procs=cgroup_procs, cores=cores)
        with log.open("wb") if log else nullcontext() as output:
            try:
                self._popen = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT if log else None,
                    start_new_session=True,
                    cwd=directory,
                )
            except FileNotFoundError as missing:
                raise SetupError(f"{name}: cannot be started: {missing}") from missing

    @property
    def pid(self) -> int:
        """The process id, which is also the id of the process's session and process group."""
        return self._popen.pid

    def exit_code(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        return self._popen.poll()

    def output(self) -> str:
        """Return the output that the process has written to its log so far."""
        return self.log.read_text(errors="replace")

    def require_running(self) -> None:
        """Raise SetupError with the end of the log if the process has ended."""
        code = self.exit_code()
        if code is not None:
            raise SetupError(f"{self.name} ended with exit code {code}; the end of its log {self.log}:\n{self.tail()}")

    def await_output(self, text: str, timeout_s: float) -> str:
        """Return the first line of output that contains `text`; raise SetupError if the process ends, or after
        `timeout_s` seconds."""
        match = ""

        def is_printed() -> bool:
            nonlocal match
            lines = self.output().splitlines()
            match = next((line for line in lines if text in line), "")
            return bool(match)

        self.await_true(f"waiting for {text!r} in its output", is_printed, timeout_s)
        return match

    def await_true(self, what: str, condition: Callable[[], bool], timeout_s: float) -> None:
        """Return once `condition` returns True; raise SetupError if the process ends, or after `timeout_s` seconds."""

        def holds() -> bool:
            if condition():
                return True
            self.require_running()
            return False

        try:
            await_true(f"{self.name}: {what}", holds, timeout_s)
        except SetupError as error:
            if self.exit_code() is None:
                raise SetupError(f"{error}; the end of its log:\n{self.tail()}") from error
            raise

    def wait(self, timeout_s: float) -> int:
        """Return the exit code once the process has ended; raise SetupError after `timeout_s` seconds."""
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired as late:
            raise SetupError(f"{self.name} has not ended after {timeout_s:g} s") from late

    def result(self, timeout_s: float) -> Any:
        """Wait until the process has ended, and return the last line of its output, parsed as JSON; raise SetupError if
        the process fails."""
        if self.wait(timeout_s):
            self.require_running()
        return json.loads(self.output().splitlines()[-1])

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the process and its children: send SIGTERM to all. Once the process itself has ended, or after
        `timeout_s` seconds, send SIGKILL to those that still run."""
        if self._popen.returncode is not None:
            return
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + timeout_s
        while not self._leader_ended() and time.monotonic() < deadline:
            time.sleep(POLL_S)
        # The leader is not reaped yet, so no other process group can have its id.
        self._signal(signal.SIGKILL)
        self._popen.wait()

    def _leader_ended(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def tail(self) -> str:
        """Return the last lines of the process's log."""
        return "\n".join(self.output().splitlines()[-15:]) or "(empty)"


def run_in(namespace_pid: int | None, argv: Sequence[str], *, timeout_s: float = 20.0) -> str:
    """Run a short command in the namespaces of a process (None: of this process) and return its output; raise
    SetupError if the command fails."""
    try:
        done = subprocess.run(
            command_in(argv, namespace_pid=namespace_pid),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise SetupError(f"{' '.join(argv)}: not done after {timeout_s:g} s") from late
    if done.returncode:
        raise SetupError(f"{' '.join(argv)}: exit code {done.returncode}: {done.stdout.strip()}")
    return done.stdout


def processor_s(pid: int) -> float:
    """Return the CPU time of a process's first thread in seconds, with a resolution of 1 ns (/proc/PID/schedstat)."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def threads_s(pid: int) -> float:
    """Return the CPU time in seconds of those threads of a process that have not ended, with a resolution of 1 ns."""
    seconds = 0.0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended since the directory was read
            seconds += int((thread / "schedstat").read_text().split()[0]) / 1e9
    return seconds


def process_usage(pid: int) -> tuple[float, int]:
    """Return the CPU time, in seconds, that all threads of a process have used, and its resident memory in bytes
    (proc(5))."""
    columns = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = int(columns[11]) + int(columns[12])
    return ticks / TICKS_PER_S, int(columns[21]) * PAGE_BYTES
