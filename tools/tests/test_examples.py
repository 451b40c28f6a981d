"""Tests of the examples: configurations are valid without changes; `two-veths` works, reports errors and cleans up."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from sluice.config.load import parse
from sluice.config.model import Config

from tools.tests.test_bench_interrupt import marked, processes_of
from topo.testbed.switches.embedded import BINARY as EMBEDDED

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "examples/sluice.yaml"
RUN = "examples/two-veths/run"

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
built = pytest.mark.skipif(not EMBEDDED.exists(), reason=f"{EMBEDDED} is not built")


# -- tests of examples/sluice.yaml


@pytest.mark.parametrize(
    "example", ["examples/sluice.yaml", "examples/content/sluice.yaml", "examples/two-veths/sluice.yaml"]
)
def test_sluice_check_takes_the_examples(example: str) -> None:
    sluice = Path(sys.executable).with_name("sluice")
    done = subprocess.run([sluice, "check", "-c", example], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{example}: good (")


def switched_on(text: str) -> str:
    """Uncomment the optional settings. After `#`, settings have an even number of spaces, but prose has an odd
    number."""
    return re.sub(r"^#((?:  )*[\w-])", r"\1", text, flags=re.MULTILINE)


def test_settings_that_are_commented_out_are_real_and_have_the_values_they_have_without() -> None:
    text = SITE.read_text()
    plain, full = parse(text), parse(switched_on(text))
    assert plain.news is None and plain.page is None and plain.trace_file is None
    assert full.news is not None and full.page is not None and full.trace_file is not None
    assert full.model_copy(update={"news": None, "page": None, "trace_file": None}) == plain


def test_every_section_is_shown() -> None:
    shown = re.findall(r"^(\w+):", switched_on(SITE.read_text()), re.MULTILINE)
    assert sorted(shown) == sorted(Config.model_fields)


# -- tests of examples/two-veths


@dataclass
class World:
    """A network namespace and a folder /run of the test's own. All its processes have `STARTED_BY=mark` in their
    environment."""

    holder: subprocess.Popen[str]
    mark: str

    def command(self, *words: str) -> list[str]:
        return ["nsenter", "--target", str(self.holder.pid), "--mount", "--net", "--wd=.", *words]

    def start(self, folder: Path, *options: str, first: Path | None = None) -> subprocess.Popen[str]:
        """Start the script `run` of a checkout in its own process group, as a terminal does; return the script's
        process.

        `first` is a folder to put first on PATH.
        """
        path = os.pathsep.join([*([str(first)] if first else []), os.environ["PATH"]])
        return subprocess.Popen(
            self.command(f"./{RUN}", *options),
            cwd=folder,
            env={**os.environ, "STARTED_BY": self.mark, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, folder: Path, *options: str) -> tuple[int, str]:
        """Execute the script `run`; return its exit status and output."""
        process = self.start(folder, *options)
        output, _ = process.communicate(timeout=300)
        return process.returncode, output

    def shell(self, line: str) -> str:
        """Return the output of a shell line that runs in the same namespace, in the checkout. Fails if the line
        fails."""
        words = self.command("bash", "-ec", line)
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        return done.stdout

    def left(self) -> list[str]:
        """Return the processes, namespaces, files and interfaces that did not exist before the test."""
        links = self.shell("ip -brief link | cut -d' ' -f1").split()
        files = self.shell("find /run -mindepth 1 ! -path /run/netns").split()
        return [*processes_of(f"STARTED_BY={self.mark}"), *files, *(link for link in links if link != "lo")]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    make = "mount -t tmpfs tmpfs /run && echo made && exec sleep infinity"
    with subprocess.Popen(
        ["unshare", "--mount", "--net", "sh", "-c", make], stdout=subprocess.PIPE, text=True
    ) as holder:
        try:
            assert holder.stdout is not None and holder.stdout.readline() == "made\n"
            yield World(holder, str(tmp_path))
        finally:
            for pid in marked(f"STARTED_BY={tmp_path}"):  # left by a failed test
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            holder.kill()


def lines_until(process: subprocess.Popen[str], text: str) -> str:
    """Return the process's output up to and including the first line that contains the text."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return "".join(lines)
    raise AssertionError(f"it ended without {text!r}: {''.join(lines)}")


def interrupt(process: subprocess.Popen[str]) -> str:
    """Send SIGINT to every process of the group, as Ctrl-C does. Assert that the process exits with 130 (128 + SIGINT);
    return its further output."""
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT, output
    return output


@pytest.mark.root
@as_root
@built
class TestTwoVeths:
    """Tests of `two-veths` with the embedded switch and the controller."""

    def test_once_both_servers_answer(self, world: World) -> None:
        status, output = world.run(ROOT, "--once")
        assert status == 0, output
        match = re.search(r"of 20 requests s1 answered (\d+), s2 (\d+)", output)
        assert match and all(int(number) for number in match.groups())
        assert output.endswith("ended; its processes, namespaces and files are gone\n")
        assert world.left() == []

    def test_what_it_says_to_try_works_until_ctrl_c(self, world: World) -> None:
        process = world.start(ROOT)
        output = lines_until(process, "Ctrl-C ends it")
        ask, status, drain, undrain = re.findall(r"^  sudo (.*)$", output, re.MULTILINE)

        answers = {name: int(count) for count, name in re.findall(r"(\d+) this is (\w+)", world.shell(ask))}
        assert sorted(answers) == ["s1", "s2"] and sum(answers.values()) == 20
        assert "web 203.0.113.80:80" in world.shell(status)
        world.shell(drain)
        assert world.shell(ask).split() == ["20", "this", "is", "s2"]
        world.shell(undrain)

        code, refused = world.run(ROOT, "--once")
        assert code == 1 and "it runs already (processes " in refused
        assert "this is" in world.shell(ask), "a second run has touched the first"

        assert "its processes, namespaces and files are gone" in interrupt(process)
        assert world.left() == []

    @pytest.mark.parametrize("line", ["s1: Serving HTTP", "switch: sluice-switch: serving"])
    def test_ctrl_c_in_the_middle_leaves_nothing(self, world: World, line: str) -> None:
        process = world.start(ROOT)
        lines_until(process, line)
        assert len(world.left()) > 3
        interrupt(process)
        assert world.left() == []

    def test_a_run_that_was_killed_is_not_in_the_way(self, world: World) -> None:
        process = world.start(ROOT)
        lines_until(process, "s1: Serving HTTP")
        process.kill()
        process.communicate()
        deadline = time.monotonic() + 60
        while processes_of(f"STARTED_BY={world.mark}"):
            assert time.monotonic() < deadline, "its processes go with it"
            time.sleep(0.1)
        assert world.left(), "it could not tidy up"
        process = world.start(ROOT)
        lines_until(process, "s1: Serving HTTP")
        interrupt(process)
        assert world.left() == []


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout with the example; nothing has been built or installed in it."""
    folder = tmp_path / "checkout"
    shutil.copytree(ROOT / "examples", folder / "examples")
    return folder


@pytest.mark.root
@as_root
def test_it_says_what_is_missing_and_how_to_get_it(world: World, checkout: Path) -> None:
    assert world.run(checkout) == (1, "two-veths: .venv/bin/sluice is missing: make setup\n")
    script(checkout / ".venv/bin/sluice", "")
    switch = "target/release/sluice-switch"
    assert world.run(checkout) == (1, f"two-veths: {switch} is not built: make setup\n")
    script(checkout / switch, "")
    path = checkout / "path"
    path.mkdir()
    (path / "dirname").symlink_to("/usr/bin/dirname")
    done = world.shell(f"cd {checkout}; PATH={path} /bin/bash {RUN} 2>&1 || true")
    assert done == "two-veths: ip is missing: apt-get install iproute2\n"
    assert world.run(checkout, "--twice") == (2, f"usage: {RUN} [--once]\n")
    assert world.left() == []


LATE = f"""\
# Its turn comes when its parent, which the sixth argument names, has gone.
echo here >>/run/late
while grep -q "^PPid:[[:space:]]*$6$" /proc/$$/status; do sleep 0.02; done
exec {shutil.which("setpriv")} "$@"
"""


@pytest.mark.root
@as_root
def test_a_run_that_was_killed_as_it_started_a_process_leaves_none(world: World, checkout: Path) -> None:
    for program in ("target/release/sluice-switch", ".venv/bin/python3", ".venv/bin/sluice"):
        script(checkout / program, "exec sleep 600")
    script(checkout / "late/setpriv", LATE)
    process = world.start(checkout, first=checkout / "late")
    world.shell("until [ -s /run/late ]; do sleep 0.02; done")
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 60
    while left := processes_of(f"STARTED_BY={world.mark}"):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def test_it_says_that_it_needs_root() -> None:
    user = 65534 if os.geteuid() == 0 else None
    with (ROOT / RUN).open() as text:  # on standard input, since an unprivileged user may not read root's checkout
        done = subprocess.run(["bash"], stdin=text, user=user, cwd="/", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"two-veths: network namespaces need root: sudo {RUN}\n")


@pytest.mark.root
@as_root
@pytest.mark.parametrize(
    ("switch", "message"),
    [
        ("echo no program; exit 1", "two-veths: switch has ended; its log says: no program"),
        ("echo serving P4Runtime; sleep 3; echo farewell", "a process has ended; the ends of all logs are above"),
    ],
    ids=["at its start", "later"],
)
def test_a_switch_that_ends_is_a_failure_with_its_log(world: World, checkout: Path, switch: str, message: str) -> None:
    script(checkout / "target/release/sluice-switch", switch)
    script(checkout / ".venv/bin/python3", "echo Serving HTTP; exec sleep 600")
    script(checkout / ".venv/bin/sluice", "echo sluice: ready; exec sleep 600")
    status, output = world.run(checkout)
    assert status == 1 and message in output
    assert "farewell" in output or "no program" in output
    assert world.left() == []
