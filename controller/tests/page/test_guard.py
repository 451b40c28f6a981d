"""Tests of the page's refusal of requests from other sites, and of invalid tokens."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sluice.loops.commands import Refused
from sluice.page import token
from sluice.page.guard import refusal
from sluice.page.token import Lock, token_of


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "127.0.0.1:8080"},
        {"host": "localhost:9000"},
        {"host": "[::1]:8080", "origin": "http://[::1]:8080"},
        {"host": "lb.example.org", "origin": "https://lb.example.org"},
        {"host": "LB.example.org.:8080"},
        {"host": "127.0.0.1:8080", "origin": "http://127.0.0.1:8080", "sec-fetch-site": "same-origin"},
        {"host": "127.0.0.1:8080", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ],
)
def test_own_requests_are_taken(headers: dict[str, str]) -> None:
    assert refusal(headers, "lb.example.org") is None
    assert refusal(headers, "Lb.Example.Org.") is None


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"host": "evil.example:8080", "origin": "http://evil.example:8080"}, "asks for the host 'evil.example:8080'"),
        ({"host": "["}, "asks for the host '['"),
        ({}, "asks for the host ''"),
        ({"host": "127.0.0.1:8080", "origin": "http://evil.example"}, "comes from another site (http://evil.example)"),
        ({"host": "127.0.0.1:8080", "origin": "http://127.0.0.1:3000"}, "comes from another site"),
        ({"host": "127.0.0.1:8080", "origin": "null"}, "comes from another site (null)"),
        ({"host": "127.0.0.1", "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, "comes from another site"),
    ],
)
def test_others_are_not(headers: dict[str, str], why: str) -> None:
    said = refusal(headers, "lb.example.org")
    assert said is not None
    assert why in said


NAMES = ("status.example", "Status.example:8443")


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "status.example", "origin": "https://status.example"},
        {"host": "STATUS.example.:8443", "origin": "https://status.example:8443"},
        {"host": "status.example", "origin": "https://status.example:8443"},
        {"host": "127.0.0.1:8080", "origin": "https://status.example", "sec-fetch-site": "same-origin"},
        {"host": "localhost:9000", "origin": "http://localhost:9000"},
    ],
    ids=["host kept", "host and port kept", "port left out", "host replaced", "without the proxy"],
)
def test_requests_by_a_name_that_a_proxy_has_are_taken(headers: dict[str, str]) -> None:
    assert refusal(headers, "127.0.0.1", NAMES) is None
    if "status" in " ".join(headers.values()).lower():
        assert refusal(headers, "127.0.0.1") is not None


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.status.example"},
        {"host": "status.example.evil"},
        {"host": "status.example", "origin": "https://evil.example"},
        {"host": "status.example", "origin": "https://status.example:3000"},
        {"host": "127.0.0.1:8080", "origin": "https://evil.example"},
        {"host": "127.0.0.1:8080", "origin": "https://status.example:3000"},
        {"host": "status.example", "origin": "null"},
        {"host": "status.example", "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
    ],
)
def test_names_open_nothing_to_other_sites(headers: dict[str, str]) -> None:
    assert refusal(headers, "127.0.0.1", NAMES) is not None


def test_a_token_is_made_for_its_owner_alone_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "token"
    made = token_of(str(path))
    assert len(made) >= 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert token_of(str(path)) == made


def test_a_token_that_others_can_read_or_guess_is_none(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("0123456789abcdef")
    path.chmod(0o640)
    with pytest.raises(Refused, match=f"can be read by others .mode 640.; run: chmod 600 {path}"):
        token_of(str(path))
    path.chmod(0o600)
    assert token_of(str(path)) == "0123456789abcdef"
    path.write_text("short\n")
    with pytest.raises(Refused, match="a token of 5 characters; give it 16 or more"):
        token_of(str(path))
    with pytest.raises(FileNotFoundError):
        token_of(str(tmp_path / "none" / "token"))


async def test_no_guess_is_looked_at_while_another_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token, "_PAUSE_S", 0.01)
    lock = Lock(str(tmp_path / "token"))
    right = token_of(str(tmp_path / "token"))
    await lock.check(right)
    guesses = ("schlüssel", "", right)
    said = await asyncio.gather(*(lock.check(guess) for guess in guesses), return_exceptions=True)
    assert [str(error).partition(";")[0] for error in said] == [
        "wrong token",
        *["a wrong token was entered just now"] * 2,
    ]
    with pytest.raises(Refused, match="wrong token"):
        await lock.check("\ud800")
    await lock.check(right)
