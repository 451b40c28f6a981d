"""Processes: started in a namespace and a cgroup, awaited, stopped by pid.

Every process is the leader of its own session, so a Ctrl-C at the terminal reaches only its parent, which then stops
its processes in order.  Should the parent be killed, they end as well (`with_parent`).  Start processes from the main
thread only: the kernel's signal follows the thread which started them.
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
"""Seconds between two evaluations of a condition that is awaited."""
REALTIME_PRIORITY = 1
"""The lowest of the real-time priorities: before every ordinary process, whatever its niceness."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def await_true(what: str, condition: Callable[[], bool], timeout_s: float) -> None:
    """Return once `condition` holds; raise SetupError naming `what` after `timeout_s` seconds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise SetupError(f"{what}: not so after {timeout_s:g} s")
        time.sleep(POLL_S)


def with_parent(signal_name: str = "KILL") -> list[str]:
    """Return the prefix of a command line whose command ends with this process, however this process ends.

    The kernel sends the signal, but not where the parent has gone before setpriv asked for it (prctl(2)).  A command
    that finds another parent after asking has missed the signal; it ends.
    """
    check = '[ "$PPID" = "$0" ] || exit 1; exec "$@"'
    return ["setpriv", "--pdeathsig", signal_name, "sh", "-c", check, str(os.getpid())]


_REALTIME = ["chrt", "--rr", str(REALTIME_PRIORITY)]


@cache
def _realtime_allowed() -> bool:
    return subprocess.run([*_REALTIME, "true"], capture_output=True, check=False).returncode == 0


def before_all_else(argv: Sequence[str]) -> list[str]:
    """Return the command line that runs `argv`, and what it starts, with real-time priority, in turns (SCHED_RR).

    Switches forward packets so: a real switch has processors of its own. Where real-time priority is not allowed (a
    container without CAP_SYS_NICE), the command line is `argv` itself.
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

    The cgroup is joined first, by each of its files, while their file systems are certain to be visible.  Without
    `cores` the command runs on the processors of the process that starts it.
    """
    command = with_parent("TERM")
    if namespace_pid is not None:
        command += ["mnexec", "-a", str(namespace_pid)]
    command += [*(["taskset", "--cpu-list", ",".join(map(str, sorted(cores)))] if cores else []), *argv]
    for procs in cgroup_procs:
        command = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(procs), *command]
    return command


class Process:
    """One running program; its standard output and error go to `log`, or where ours go."""

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
        """Process id, also the id of its session and process group."""
        return self._popen.pid

    def exit_code(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        return self._popen.poll()

    def output(self) -> str:
        """Return what the process has written so far."""
        return self.log.read_text(errors="replace")

    def require_running(self) -> None:
        """Raise SetupError with the end of the log if the process has ended."""
        code = self.exit_code()
        if code is not None:
            raise SetupError(f"{self.name} ended with exit code {code}; the end of its log {self.log}:\n{self.tail()}")

    def await_output(self, text: str, timeout_s: float) -> str:
        """Return the first line that contains `text`; raise SetupError if the process ends or time is up."""
        match = ""

        def is_printed() -> bool:
            nonlocal match
            lines = self.output().splitlines()
            match = next((line for line in lines if text in line), "")
            return bool(match)

        self.await_true(f"waiting for {text!r} in its output", is_printed, timeout_s)
        return match

    def await_true(self, what: str, condition: Callable[[], bool], timeout_s: float) -> None:
        """Return once `condition` holds; raise SetupError if the process ends or time is up."""

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
        """Return the last line of output, read as JSON, once the process has ended; raise SetupError if it fails."""
        if self.wait(timeout_s):
            self.require_running()
        return json.loads(self.output().splitlines()[-1])

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the process and its children: SIGTERM, and after `timeout_s` seconds SIGKILL."""
        if self._popen.returncode is not None:
            return
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + timeout_s
        while not self._leader_ended() and time.monotonic() < deadline:
            time.sleep(POLL_S)
        # The leader is not reaped yet, so its group id cannot belong to anyone else.
        self._signal(signal.SIGKILL)
        self._popen.wait()

    def _leader_ended(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def tail(self) -> str:
        """Return the end of the process's log."""
        return "\n".join(self.output().splitlines()[-15:]) or "(empty)"


def run_in(namespace_pid: int | None, argv: Sequence[str], *, timeout_s: float = 20.0) -> str:
    """Run a short command in a namespace (None: ours) and return its output; raise SetupError if it fails."""
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
    """Return the seconds a process's first thread has run, to the nanosecond (/proc/PID/schedstat)."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def threads_s(pid: int) -> float:
    """Return the seconds that the threads of a process have run, to the nanosecond; ended threads do not count."""
    seconds = 0.0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended meanwhile
            seconds += int((thread / "schedstat").read_text().split()[0]) / 1e9
    return seconds


def process_usage(pid: int) -> tuple[float, int]:
    """Return the seconds of CPU a process has used, all threads, and its resident bytes (proc(5))."""
    columns = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = int(columns[11]) + int(columns[12])
    return ticks / TICKS_PER_S, int(columns[21]) * PAGE_BYTES
