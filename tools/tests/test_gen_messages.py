"""Checks that every warning that the controller's sources log has a remedy in the generator."""

from pathlib import Path

import pytest

from tools import gen_messages

MODULE = """
_log.warning("no room", extra={"left": 3})
_log.log(level, "lost", extra={})
_log.log(level, "decision", extra={})
_log.info("reloaded")
_log.error(f"not {constant}")
"""


def test_warnings_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.py").write_text(MODULE)
    monkeypatch.setattr(gen_messages, "SOURCES", tmp_path)
    assert gen_messages.messages() == {"no room", "lost"}


def test_a_message_without_a_remedy_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.py").write_text(MODULE)
    monkeypatch.setattr(gen_messages, "SOURCES", tmp_path)
    monkeypatch.setattr(gen_messages, "REMEDIES", {"no room": "Make room."})
    with pytest.raises(ValueError, match=r"without a remedy.*\['lost'\]"):
        gen_messages.page()
