"""Builds the wheels that an installation needs: the controller's, and that of the switch, the agent and the gateway.

The programs must have been built by cargo before (`make dist` builds them); this tool needs no network.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECTS = (ROOT, ROOT / "deploy/wheel")


def build(folder: Path) -> list[Path]:
    """Replace the wheels in a folder and return the paths of the new ones. Raises CalledProcessError; pip prints the
    reason."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.whl"):
        old.unlink()
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--no-build-isolation", "--wheel-dir", folder, *PROJECTS], check=True)
    return sorted(folder.glob("*.whl"))


def main(arguments: Iterable[str] | None = None) -> int:
    """Build the wheels and print their paths; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.dist", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the wheels go; those in it are replaced")
    try:
        wheels = build(parser.parse_args(None if arguments is None else list(arguments)).folder)
    except subprocess.CalledProcessError as error:
        return error.returncode
    for wheel in wheels:
        print(f"{wheel} ({wheel.stat().st_size / 1e6:.1f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
