"""Puts the programs that cargo has built into the wheel, without debugging sections, and tags the wheel's platform."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

RELEASE = "target/release"
PROGRAMS = ("sluice-switch", "sluice-agent", "sluice-tofino")


class Programs(BuildHookInterface[Any]):
    """Build hook; hatchling finds this class by its base class."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the stripped programs to the wheel, and set the wheel's platform tag.

        Raises FileNotFoundError, whose message states the remedy, if a program is not built.
        """
        folder = Path(self.root).parents[1] / RELEASE
        missing = [name for name in PROGRAMS if not (folder / name).is_file()]
        if missing:
            raise FileNotFoundError(f"{folder} has no {' and no '.join(missing)}: make setup")
        self._stripped = tempfile.TemporaryDirectory()
        for name in PROGRAMS:
            target = f"{self._stripped.name}/{name}"
            subprocess.run(["strip", "--strip-debug", "-o", target, folder / name], check=True)
            build_data["shared_scripts"][target] = name
        build_data["pure_python"] = False
        # Any version of Python runs the wheel; glibc must be at least as new as on the build machine (PEP 600).
        platforms = [tag.platform for tag in sys_tags()]
        platform = next(
            (platform_tag for platform_tag in platforms if platform_tag.startswith("manylinux_")), platforms[0]
        )
        build_data["tag"] = f"py3-none-{platform}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the stripped copies of the programs."""
        self._stripped.cleanup()
