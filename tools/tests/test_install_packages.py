"""Checks that Debian packages are installed without starting their services, and that parallel installations wait for
each other."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "install_packages.sh"
APT_GET = """#!/bin/sh
# Called with options and `update`, then with options and `install`, as Debian's: maintainer scripts ask policy-rc.d.
case "$*" in
*install*) status=0; /usr/sbin/policy-rc.d prometheus start || status=$?; echo "$status $*" >>"$0.log" ;;
esac
"""


LOCKING = """#!/bin/sh
# As Debian's: `update` fails at once while another reads the lists; the first of all finds a stranger at them.
refuse() { echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)" >&2; exit 100; }
case "$*" in
*install*) echo "$*" >>"$0.log" ;;
*)
    mkdir "$0.stranger" 2>&1 && refuse
    mkdir "$0.lock" || refuse
    sleep 1
    rmdir "$0.lock"
    ;;
esac
"""


def place(directory: Path, apt_get: str) -> dict[str, str]:
    """Return an environment in which the command `apt-get` is the script with the text `apt_get`. Write a list of
    packages, with a package that is not installed."""
    (directory / "packages.txt").write_text("# comment\nno-such-package-here # why\n")
    (directory / "apt-get").write_text(apt_get)
    (directory / "apt-get").chmod(0o755)
    return {**os.environ, "PATH": f"{directory}:/usr/bin:/bin"}


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root")
def test_no_service_is_started(tmp_path: Path) -> None:
    environment = place(tmp_path, APT_GET)
    line = f"mount -t tmpfs none /usr/sbin && {SCRIPT} {tmp_path}/packages.txt && ls -A /usr/sbin"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", line],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Installing Debian packages: no-such-package-here\n", "nothing is left in /usr/sbin"
    forbidden = 101  # policy-rc.d(8): "action not allowed"
    (called,) = (tmp_path / "apt-get.log").read_text().splitlines()
    assert called.startswith(f"{forbidden} ") and called.endswith(" no-such-package-here")


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root")
def test_two_at_once_wait_for_each_other(tmp_path: Path) -> None:
    environment = place(tmp_path, LOCKING)
    line = f"mount -t tmpfs none /usr/sbin && exec {SCRIPT} {tmp_path}/packages.txt"
    both = [
        subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", line],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=60) for process in both]
    assert ([process.returncode for process in both], [errors for _, errors in said]) == ([0, 0], ["", ""])
    assert len((tmp_path / "apt-get.log").read_text().splitlines()) == len(both)
