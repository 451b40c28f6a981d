"""Debian packages are installed without starting what is in them, also where nothing forbids that beforehand."""

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


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root")
def test_no_service_is_started(tmp_path: Path) -> None:
    (tmp_path / "packages.txt").write_text("# comment\nno-such-package-here # why\n")
    (tmp_path / "apt-get").write_text(APT_GET)
    (tmp_path / "apt-get").chmod(0o755)
    line = f"mount -t tmpfs none /usr/sbin && {SCRIPT} {tmp_path}/packages.txt && ls -A /usr/sbin"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", line],
        env={**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Installing Debian packages: no-such-package-here\n", "nothing is left in /usr/sbin"
    forbidden = 101  # policy-rc.d(8): "action not allowed"
    (called,) = (tmp_path / "apt-get.log").read_text().splitlines()
    assert called.startswith(f"{forbidden} ") and called.endswith(" no-such-package-here")
