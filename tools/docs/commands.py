"""Checks that a command of the documentation would run: its program, target, module and flags exist. Only --help is
executed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from functools import cache
from importlib.util import find_spec

from tools.docs.markdown import ROOT

SWITCH = "target/release/sluice-switch"
OTHERS = {"curl", "sort", "uniq"}
"""Programs of the operating system, whose flags are not checked."""
PREFIXES = ("sudo", "env")


class WrongCommandError(Exception):
    """A command that would not run; the message states why."""


@cache
def targets() -> set[str]:
    """Return the targets of the Makefile."""
    return set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@cache
def help_of(*command: str) -> str:
    """Return the output of a Python module with `--help`, which lists the module's flags."""
    done = subprocess.run(
        [sys.executable, "-m", *command, "--help"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    if done.returncode != 0:
        raise WrongCommandError(f"{' '.join(command)} --help says: {done.stderr.strip()[-300:]}")
    return done.stdout


@cache
def switch_flags() -> str:
    """Return the source of the switch's command line and usage text, without its tests."""
    return (ROOT / "switch/cli/src/args.rs").read_text().partition("#[cfg(test)]")[0]


def flags(arguments: list[str]) -> set[str]:
    """Return the long and short flags among the arguments, without their values."""
    return {match[0] for argument in arguments if (match := re.match(r"-{1,2}[a-zA-Z][\w-]*", argument))}


def require(arguments: list[str], known: str) -> None:
    """Raise WrongCommandError for a flag that the text `known` does not contain."""
    for flag in flags(arguments):
        if not re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", known):
            raise WrongCommandError(f"no flag {flag}")


def check_python(arguments: list[str]) -> None:
    """Check the arguments of Python: `python -m MODULE ...` or `python SCRIPT ...`."""
    if arguments[0] != "-m":
        if not (ROOT / arguments[0]).is_file():
            raise WrongCommandError(f"no file {arguments[0]}")
    elif find_spec(arguments[1]) is None:
        raise WrongCommandError(f"no module {arguments[1]}")
    elif flags(arguments[2:]):
        require(arguments[2:], help_of(arguments[1]))


def check_words(command: list[str]) -> None:
    """Check one simple command. Raises WrongCommandError if it would not run."""
    while command and (command[0] in PREFIXES or re.match(r"[A-Z]+=", command[0])):
        command = command[1:]
    if command[:3] == ["ip", "netns", "exec"]:
        command = command[4:]
    if not command:
        return
    program, arguments = command[0].removeprefix(".venv/bin/"), command[1:]
    if program == "make":
        for target in [argument for argument in arguments if "=" not in argument]:
            if target not in targets():
                raise WrongCommandError(f"no target {target}")
    elif program == "python":
        check_python(arguments)
    elif program == "sluice":
        require(arguments[1:], help_of("sluice", arguments[0]))
    elif program == "cargo":
        for named in re.findall(r"--manifest-path (\S+)", " ".join(arguments)):
            if not (ROOT / named).is_file():
                raise WrongCommandError(f"no file {named}")
    elif program == SWITCH:
        require(arguments, switch_flags())
    elif program.startswith("examples/"):
        if not (ROOT / program).stat().st_mode & 0o100:
            raise WrongCommandError(f"{program} cannot be executed")
    elif program not in OTHERS:
        raise WrongCommandError(f"an unknown program, {program}: say in tools/docs/commands.py how it is checked")


def check(line: str) -> None:
    """Check a shell line of simple commands, joined by && or |. Raises WrongCommandError if it would not run."""
    words = shlex.split(line, comments=True)
    command: list[str] = []
    for word in [*words, "|"]:
        if word in ("&&", "|"):
            check_words(command)
            command = []
        else:
            command.append(word)
