"""Tests of `make dist`: programs from its wheels run without the repository, with only the declared dependencies."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tools import dist
from tools.tests.test_examples import RUN, World, as_root, built, world

__all__ = ["world"]

ROOT = dist.ROOT


def required(name: str) -> dict[str, Distribution]:
    """Return an installed distribution and its transitive dependencies, without extras, by name."""
    distributions: dict[str, Distribution] = {}
    pending = [name]
    while pending:
        package = distribution(pending.pop())
        if package.name not in distributions:
            distributions[package.name] = package
            requirements = map(Requirement, package.requires or ())
            pending += [
                need.name for need in requirements if need.marker is None or need.marker.evaluate({"extra": ""})
            ]
    return distributions


def installed(folder: Path, wheels: Iterable[Path]) -> Path:
    """Create a virtual environment with the wheels and links to installed dependencies; return the folder of its
    commands.

    pip has no other source of packages: the package index and pip's environment variables are disabled.
    """
    venv.create(folder, with_pip=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name, package in required("sluice").items():
        tops = {file.parts[0] for file in package.files or () if file.parts[0] not in ("..", "__pycache__")}
        for top in tops if name != "sluice" else ():
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(package.locate_file(top))))
    command = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    subprocess.run([*command, *wheels], check=True, cwd=folder)
    return folder / "bin"


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the commands that the wheels install."""
    folder = tmp_path_factory.mktemp("dist")
    return installed(folder / "x y", dist.build(folder / "wheels"))


def said(commands: Path, *words: str) -> str:
    done = subprocess.run([commands / words[0], *words[1:]], cwd=commands, capture_output=True, text=True, check=True)
    return done.stdout


@built
def test_all_have_one_version(commands: Path) -> None:
    versions = {
        said(commands, name, "--version").split()[-1]
        for name in ("sluice", "sluice-switch", "sluice-agent", "sluice-tofino")
    }
    assert versions == {tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]}


@built
def test_rules_are_checked_by_the_agent_of_the_wheel(commands: Path) -> None:
    config = ROOT / "examples/content/sluice.yaml"
    for way in ([commands / "sluice"], [commands / "python", "-m", "sluice"]):
        done = subprocess.run(
            [*way, "match", "--config", config, "shop", "--get", "http://shop/logo.gif"],
            cwd=commands.parent,
            env={"PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


@built
def test_nothing_is_of_the_checkout(commands: Path) -> None:
    line = "import sluice, sluice.switch.pipeline as p; print(sluice.__file__, p.artefacts(), sep='\\n')"
    for path in said(commands, "python", "-c", line).splitlines():
        assert Path(path).is_relative_to(commands.parent)
    said(commands, "sluice", "config", "init", "--config", str(commands.parent / "sluice.yaml"))
    said(commands, "sluice", "check", "--config", str(commands.parent / "sluice.yaml"))


@pytest.mark.root
@as_root
@built
def test_the_example_runs_without_the_repository(commands: Path, world: World, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples/two-veths", tmp_path / "examples/two-veths")
    output = world.shell(f"cd {tmp_path} && SLUICE_BIN='{commands}' ./{RUN} --once")
    assert re.search(r"of 20 requests s1 answered [1-9]\d*, s2 [1-9]\d*$", output, re.MULTILINE), output
    assert world.left() == []


def test_what_is_not_built_is_named(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "deploy/wheel", tmp_path / "deploy/wheel")
    shutil.copy(ROOT / "Cargo.toml", tmp_path)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path]
    done = subprocess.run([*command, tmp_path / "deploy/wheel"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "has no sluice-switch and no sluice-agent and no sluice-tofino: make setup" in done.stdout + done.stderr
