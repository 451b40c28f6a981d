"""The agent's program, which has the rule engine: what it says of rules, without an agent that runs."""

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
    """What is wrong with rules, and what is worth knowing of them (rules that no request reaches)."""
    with _file(content) as file:
        done = _run([program, "check", file])
    wrong, known = (
        list(_problems(done.stderr)),
        [one for one in _problems(done.stdout) if one.path.startswith("rules[")],
    )
    if done.returncode and not wrong:
        wrong = [Problem("", done.stderr.strip() or f"{NAME} ends with {done.returncode}", "")]
    return (wrong if done.returncode else []), known


def decide(program: Path, content: ContentConfig, service: str, source: str | None, request: bytes) -> tuple[bool, str]:
    """Whether a request to a service (ADDRESS:PORT) goes anywhere, and what becomes of it in words."""
    with _file(content) as file:
        at = ["--service", service, *(["--source", source] if source else [])]
        done = _run([program, "match", file, *at, "--request", "-"], request)
    return done.returncode == 0, (done.stdout or done.stderr).strip()


def _problems(text: str) -> Iterator[Problem]:
    for line in text.splitlines():
        if (found := _LINE.fullmatch(line)) is not None:
            yield Problem(found["path"], found["message"], found["remedy"] or "")


@contextmanager
def _file(content: ContentConfig) -> Generator[str]:
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        file.write(content.rule_set_json())
        file.flush()
        yield file.name


def _run(command: list[str | Path], given: bytes = b"") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, input=given, capture_output=True, timeout=_PATIENCE_S, check=False)
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    )
