"""Processes of the lab: started in a namespace and a cgroup, awaited, stopped by pid.

Every process is the leader of its own session, so a Ctrl-C at the terminal reaches only the lab, which then stops
its processes in order.  Should the lab itself be killed, the kernel sends them SIGTERM (`setpriv --pdeathsig`).  Start
processes from the main thread only: that signal follows the thread which started them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path

from topo.cores import kept_to
from topo.errors import LabError

POLL_S = 0.02
"""Seconds between two looks at a condition that is awaited."""


def await_true(what: str, condition: Callable[[], bool], timeout_s: float) -> None:
    """Return once `condition` holds; raise LabError naming `what` after `timeout_s` seconds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"{what}: not so after {timeout_s:g} s")
        time.sleep(POLL_S)


def command_in(
    argv: Sequence[str],
    *,
    namespace_pid: int | None = None,
    cgroup_procs: Sequence[Path] = (),
    cores: Collection[int] = (),
) -> list[str]:
    """Return the command line that runs `argv` in the namespaces of a process, in a cgroup, and on certain processors.

    The cgroup is joined first, by each of its files, while their file systems are certain to be visible.  No `cores`:
    those of whoever starts it.
    """
    command = ["setpriv", "--pdeathsig", "TERM"]
    if namespace_pid is not None:
        command += ["mnexec", "-a", str(namespace_pid)]
    command += kept_to(cores, argv) if cores else argv
    for procs in cgroup_procs:
        command = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(procs), *command]
    return command


class Process:
    """One running program; its standard output and error go to `log`."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log: Path,
        namespace_pid: int | None = None,
        cgroup_procs: Sequence[Path] = (),
        cores: Collection[int] = (),
        directory: Path | None = None,
    ) -> None:
        self.name = name
        self.log = log
        command = command_in(argv, namespace_pid=namespace_pid, cgroup_procs=cgroup_procs, cores=cores)
        with log.open("wb") as output:
            try:
                self._popen = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    cwd=directory,
                )
            except FileNotFoundError as missing:
                raise LabError(f"{name}: cannot be started: {missing}") from missing

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
        """Raise LabError with the end of the log if the process has ended."""
        code = self.exit_code()
        if code is not None:
            raise LabError(f"{self.name} ended with exit code {code}; the end of its log {self.log}:\n{self._tail()}")

    def await_output(self, text: str, timeout_s: float) -> str:
        """Return the first line that contains `text`; raise LabError if the process ends or time is up."""
        found = ""

        def seen() -> bool:
            nonlocal found
            lines = self.output().splitlines()
            found = next((line for line in lines if text in line), "")
            if not found:
                self.require_running()
            return bool(found)

        try:
            await_true(f"{self.name}: waiting for {text!r} in its output", seen, timeout_s)
        except LabError as error:
            if self.exit_code() is None:
                raise LabError(f"{error}; the end of its log:\n{self._tail()}") from error
            raise
        return found

    def wait(self, timeout_s: float) -> int:
        """Return the exit code once the process has ended; raise LabError after `timeout_s` seconds."""
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired as late:
            raise LabError(f"{self.name} has not ended after {timeout_s:g} s") from late

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the process and what it started: SIGTERM, and SIGKILL for what is left after `timeout_s`."""
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

    def _tail(self) -> str:
        return "\n".join(self.output().splitlines()[-15:]) or "(empty)"


def run_in(namespace_pid: int, argv: Sequence[str], *, timeout_s: float = 20.0) -> str:
    """Run a short command in a namespace and return its output; raise LabError if it fails."""
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
        raise LabError(f"{' '.join(argv)}: not done after {timeout_s:g} s") from late
    if done.returncode:
        raise LabError(f"{' '.join(argv)}: exit code {done.returncode}: {done.stdout.strip()}")
    return done.stdout
