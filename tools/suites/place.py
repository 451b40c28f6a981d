"""Provides the environment for the scripts of other projects' test suites: a copy of the suite's folder, private
namespaces, and the switch on PATH."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from topo.testbed import REPOSITORY as ROOT
from topo.testbed.processes import with_parent

from .errors import SuiteError, TooLateError

ORIGINAL = "simple_switch_grpc"
"""The command by which the suites' scripts start the switch."""
NAMESPACES = ("unshare", "--net", "--pid", "--mount", "--ipc", "--fork", "--kill-child", "--mount-proc")
"""Command prefix for private interfaces, ports and processes. When `unshare` is killed, the kernel ends all processes
in the namespaces."""
_INSIDE = ("sh", "-c", 'mount -t sysfs sysfs /sys && ip link set lo up && exec "$@"', "sh")
_SUDO = """#!/bin/sh
# Everything here is root's already, and PATH has to stay what it is.
while case ${1-} in -*) true ;; *) false ;; esac; do shift; done
exec env "$@"
"""
_TAIL_LINES = 15
_END_S = 10.0


@dataclass(frozen=True)
class Place:
    """A copy of a folder, and the environment in which its scripts run."""

    folder: Path
    environment: dict[str, str]

    def require(self, commands: Iterable[str], modules: Iterable[str] = ()) -> None:
        """Raise SuiteError if commands are not on PATH or `python3` lacks modules; the error names them."""
        path = self.environment["PATH"]
        missing = [f"{command} is not on PATH" for command in commands if not shutil.which(command, path=path)]
        missing += [
            f"python3 on PATH has no module {module}"
            for module in modules
            if subprocess.run(
                ["python3", "-c", f"import {module}"], env=self.environment, capture_output=True, check=False
            ).returncode
        ]
        if missing:
            raise SuiteError(f"{'; '.join(missing)}: install what the repository's README asks for")


@contextmanager
def place(folder: Path, switch: Path | None, copy_folder: Path | None = None) -> Generator[Place]:
    """Copy a folder without `.git`; in the copy's environment, the commands `simple_switch_grpc` and `simple_switch`
    start `switch`.

    If `switch` is None, the commands on PATH are used. With `copy_folder`, the copy remains there; otherwise it is
    removed at the end. Raises SuiteError if the user is not root, or if the copy exists already.
    """
    if os.geteuid() != 0:
        raise SuiteError("this makes network namespaces and needs root: run it with sudo")
    with tempfile.TemporaryDirectory(prefix="suites-", ignore_cleanup_errors=True) as temporary:
        front = Path(temporary) / "bin"
        front.mkdir()
        (front / "sudo").write_text(_SUDO)
        (front / "sudo").chmod(0o755)
        if switch:
            # The command is a link, not a script, because scripts find the process by its name.
            (front / ORIGINAL).symlink_to(switch)
            for name in ("simple_switch", "simple_switch_CLI"):
                (front / name).symlink_to(ROOT / "tools/bmv2" / name)
        copy = (copy_folder or Path(temporary)) / folder.resolve().name
        try:
            shutil.copytree(folder, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        except FileExistsError:
            raise SuiteError(f"{copy} is there already: name another folder to keep the copy in") from None
        path = os.pathsep.join([str(front), os.environ.get("PATH", os.defpath)])
        # PYTHONUNBUFFERED makes the receivers' output reach their log files at once.
        yield Place(copy, {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1"})


class Program:
    """A command in private namespaces, with pipes to its standard input and from its output and errors."""

    def __init__(self, environment: dict[str, str], command: Sequence[str], folder: Path) -> None:
        self._process = subprocess.Popen(
            [*with_parent(), *NAMESPACES, *_INSIDE, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
            start_new_session=True,  # Ctrl-C reaches only the tool, which ends this program
        )
        assert self._process.stdin and self._process.stdout
        self._input, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._text = ""

    def say(self, line: str) -> None:
        """Write a line to the program's standard input. Raises SuiteError if the program has ended."""
        try:
            os.write(self._input, f"{line}\n".encode())
        except BrokenPipeError:
            raise SuiteError(f"it has ended before {line!r}:\n{self._tail(self._text)}") from None

    def until(self, text: str, within_s: float) -> str:
        """Wait until `text` appears in the program's output; return the output before it that no earlier call returned.

        Raises SuiteError if the program ends first, TooLateError after `within_s` seconds.
        """
        deadline = time.monotonic() + within_s
        while text not in self._text:
            if not self._more(deadline):
                raise SuiteError(f"it ended:\n{self._tail(self._text)}")
        before, _, self._text = self._text.partition(text)
        return before

    def rest(self, within_s: float) -> str:
        """Return the output until the program and all processes that it started have ended. Raises TooLateError."""
        deadline = time.monotonic() + within_s
        while self._more(deadline):
            pass
        return self._text

    def end(self) -> None:
        """End the program and every process that it started, and wait until they have ended."""
        with ExitStack() as stack:
            inside = [os.pidfd_open(int(child)) for child in self._children().split()]
            for descriptor in inside:
                stack.callback(os.close, descriptor)
            self._process.kill()
            self._process.wait()
            for descriptor in inside:
                select.select([descriptor], [], [], _END_S)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()

    def _children(self) -> str:
        """Return the process id of the first process in the namespaces; "" if it has ended."""
        pid = self._process.pid
        return Path(f"/proc/{pid}/task/{pid}/children").read_text() if self._process.poll() is None else ""

    def _more(self, deadline: float) -> bool:
        """Wait for more output and store it; return False at the end of the output. Raises TooLateError."""
        if not select.select([self._output], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TooLateError(f"nothing more in time after:\n{self._tail(self._text)}")
        data = os.read(self._output, 1 << 16)
        self._text += data.decode(errors="replace")
        return bool(data)

    @staticmethod
    def _tail(text: str) -> str:
        return "\n".join(text.strip().splitlines()[-_TAIL_LINES:])
