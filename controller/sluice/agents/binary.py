"""Calls the agent's executable, which contains the rule engine. It checks rules and applies them to a request; no agent
needs to be running."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from sluice.config.content import ContentConfig

from .messages import Problem

NAME = "sluice-agent"
_LINE = re.compile(r"(?P<path>.*?): (?P<message>.*?)(?:; (?P<remedy>.*))?")
_PATIENCE_S = 60.0


def check(program: Path, content: ContentConfig) -> tuple[list[Problem], list[Problem]]:
    """Return two lists: the errors of a rule set, and remarks on it, such as rules that no request reaches."""
    with _file(content) as file:
        done = _run([program, "check", file])
    problems, remarks = (
        list(_problems(done.stderr)),
        [remark for remark in _problems(done.stdout) if remark.path.startswith("rules[")],
    )
    if done.returncode and not problems:
        problems = [Problem("", done.stderr.strip() or f"{NAME} ends with {done.returncode}", "")]
    return (problems if done.returncode else []), remarks


def decide(program: Path, content: ContentConfig, service: str, source: str | None, request: bytes) -> tuple[bool, str]:
    """Return whether a request to a service (ADDRESS:PORT) is forwarded, and the decision as text, or False and the
    error of the executable. ``source`` is the client's address, if known."""
    with _file(content) as file:
        addresses = ["--service", service, *(["--source", source] if source else [])]
        done = _run([program, "match", file, *addresses, "--request", "-"], request)
    return done.returncode == 0, (done.stdout or done.stderr).strip()


def _problems(text: str) -> Iterator[Problem]:
    for line in text.splitlines():
        if (fields := _LINE.fullmatch(line)) is not None:
            yield Problem(fields["path"], fields["message"], fields["remedy"] or "")


@contextmanager
def _file(content: ContentConfig) -> Generator[str]:
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        file.write(content.rule_set_json())
        file.flush()
        yield file.name


def _run(command: list[str | Path], stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=_PATIENCE_S, check=False)
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    )
