"""Tests of `sluice check` and `sluice match` for content services, which print the output of the agent program."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from content import content
from sluice import programs
from sluice.agents import binary
from sluice.cli import main as cli
from sluice.config.yamllines import load, resolve

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/content/sluice.yaml"
PROGRAM = programs.find(binary.NAME)
needs_program = pytest.mark.skipif(PROGRAM is None, reason="the agent is not built")


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "sluice.yaml"
    path.write_text(content())
    return str(path)


def _program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    path = tmp_path / "sluice-agent"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setattr(programs, "find", {binary.NAME: path}.get)


def test_problems_of_rules_have_the_lines_of_the_file(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = (
        "rules[0].match.xml.purchase.total: no number; write one",
        "rules[2].match[1].method.exact: no method",
        "limits.head: too small",
    )
    _program(tmp_path, monkeypatch, f"printf '%s\\n' {' '.join(repr(word) for word in said)} >&2; exit 1")
    assert cli.main(["check", "-c", config]) == 1
    lines = content().splitlines()
    big, admin, limits = (
        next(number for number, line in enumerate(lines, 1) if text in line)
        for text in ("name: big", "name: admin", "limits")
    )
    below = "services[0].content."
    assert capsys.readouterr().err.splitlines() == [
        f"{config}:{limits}: {below}limits.head: too small",
        f"{config}:{big}: {below}rules[0].match.xml.purchase.total: no number; write one",
        f"{config}:{admin}: {below}rules[2].match[1].method: no method",
    ]


def test_the_program_reads_the_rules_without_the_agents(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path, monkeypatch, f'cp "$2" {tmp_path}/read')
    assert cli.main(["check", "-c", config]) == 0
    text = (tmp_path / "read").read_text()
    assert '"name": "big"' in text
    assert "agents" not in text


def test_unreachable_rules_are_named_and_do_not_fail(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _program(tmp_path, monkeypatch, "echo 'http: 3 rules'; echo 'rules[1]: no request reaches it: big takes it'")
    assert cli.main(["check", "-c", config]) == 0
    said = capsys.readouterr()
    assert "services[0].content.rules[1]: no request reaches it: big takes it" in said.err
    assert ": good (4 services, 7 servers)" in said.out


def test_without_the_program_the_rest_is_checked_and_that_is_said(
    config: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(programs, "find", {binary.NAME: None}.get)
    assert cli.main(["check", "-c", config]) == 0
    said = capsys.readouterr()
    assert ": good (" in said.out
    assert "the contents of `match` are not checked: no sluice-agent beside" in said.err
    assert cli.main(["match", "-c", config, "shop", "--get", "http://a/"]) == 1
    assert "no sluice-agent beside" in capsys.readouterr().err


def test_requests_reach_the_program(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _program(
        tmp_path, monkeypatch, f'echo "$1 $3 $4 $5 $6" > {tmp_path}/asked; cat > {tmp_path}/given; echo "rule big"'
    )
    assert (
        cli.main(["match", "-c", config, "shop", "--source", "10.0.0.9", "--get", "http://shop.example:80/a?b=c"]) == 0
    )
    assert capsys.readouterr().out == "rule big\n"
    assert (tmp_path / "asked").read_text() == "match --service 10.0.0.100:80 --source 10.0.0.9\n"
    assert (tmp_path / "given").read_bytes() == b"GET /a?b=c HTTP/1.1\r\nHost: shop.example:80\r\n\r\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"GET / HTTP/1.0\r\n\r\n")))
    assert cli.main(["match", "-c", config, "shop", "--request", "-"]) == 0
    assert (tmp_path / "given").read_bytes() == b"GET / HTTP/1.0\r\n\r\n"


def test_a_service_without_content_has_no_rules(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["match", "-c", config, "plain", "--get", "http://a/"]) == 1
    assert capsys.readouterr().err == "sluice: no content service 'plain'; there is: shop\n"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a.b.c", ("a", "b.c")),
        ("a.b.c.d", ("a", "b.c", "d")),
        ("a.b", ("a", "b")),
        ("a.bx", ("a",)),
        ("list[1].x", ("list", 1, "x")),
        ("list[9].x", ("list",)),
        ("", ()),
    ],
)
def test_paths_are_resolved_by_what_the_document_has(text: str, path: tuple[str | int, ...]) -> None:
    _, lines = load("a: {b: 1, b.c: {d: 2}}\nlist: [{x: 1}, {x: 2}]\n")
    assert resolve(text, (), lines) == path


@needs_program
@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["--get", "http://shop.example/logo.gif"], "rule R3: to server3, sticky none"),
        (["--get", "http://shop.example/", "--source", "192.0.2.60"], "rule R4: to all, sticky client"),
        (["--get", "http://shop.example/", "--source", "192.0.2.61"], "rule R6: to plain, sticky none"),
    ],
)
def test_the_papers_rules(arguments: list[str], rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["match", "-c", str(EXAMPLE), "shop", *arguments]) == 0
    assert capsys.readouterr().out.strip() == rule


@needs_program
@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("<purchase><totalAmount>60000</totalAmount></purchase>", "rule R1: to server1, sticky connection"),
        ("<purchase><customerName>CCL</customerName></purchase>", "rule R2: to server2, sticky none"),
        ("<purchase><totalAmount>6000</totalAmount></purchase>", "rule R6: to fast, sticky none"),
    ],
)
def test_the_papers_rules_on_bodies(body: str, rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = f"POST /buy HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: {len(body)}\r\n\r\n"
    (tmp_path / "request").write_bytes((head + body).encode())
    assert cli.main(["match", "-c", str(EXAMPLE), "shop", "--request", str(tmp_path / "request")]) == 0
    assert capsys.readouterr().out.strip() == rule


@needs_program
@pytest.mark.parametrize(
    ("fields", "offer", "says"),
    [
        (
            ("smtp", "rcpt_to"),
            "STARTTLS",
            "behind STARTTLS nothing can be read, and rule 'r' refuses; leave it out, or",
        ),
        (
            ("imap", "user"),
            "AUTH=CRAM-MD5",
            "behind CRAM-MD5 nothing can be read, and rule 'r' refuses; offer AUTH=PLAIN",
        ),
        (
            ("pop3", "user"),
            "SASL PLAIN LOGIN",
            "behind LOGIN nothing can be read, and rule 'r' refuses; offer SASL PLAIN",
        ),
    ],
)
def test_nothing_is_offered_that_hides_what_a_rule_refuses(
    fields: tuple[str, str], offer: str, says: str, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (protocol, field), text = fields, content()
    rules = text[text.index("    rules:\n") : text.index("- name: all\n")]
    for match, status in (("source: 192.0.2.0/24", 0), (f"{field}: x@example", 1)):
        guarding = f"""\
    offer: ["{offer}"]
    rules:
    - {{name: r, match: {{{match}}}, refuse: true}}
    - {{name: near, match: {{source: 10.0.1.0/24}}, to: fast}}
"""
        mail = text.replace("protocol: http", f"protocol: {protocol}").replace(rules, guarding)
        Path(config).write_text(mail)
        assert cli.main(["check", "-c", config]) == status, capsys.readouterr().err
        line = next(number for number, line in enumerate(mail.splitlines(), 1) if "offer" in line)
        complaint = f"{config}:{line}: services[0].content.offer[0]: {says}"
        assert capsys.readouterr().err.startswith(complaint) == bool(status)
