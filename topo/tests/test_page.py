"""Test of a lab's live page: a real browser shows the failure of a server, with the counts that the lab measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from topo.labs.page import start_page
from topo.labs.web import Lab
from topo.labs.webservers import PAGE
from topo.plan.load import Load
from topo.plan.network import SERVER_NAMES, Balance
from topo.testbed import browser
from topo.testbed.browser import shown_table, shown_text
from topo.testbed.nodes import switch_kind
from topo.tests import needs
from topo.tests.fixtures import lab_fixture

pytestmark = [
    needs.ROOT,
    pytest.mark.skipif(not browser.installed(), reason="no Chromium: `make setup` installs it"),
    pytest.mark.alone,
]

PATIENCE_S = 90.0
BROKEN = SERVER_NAMES[0]


lab = lab_fixture(lambda: Lab(switch_kind(), Balance("production", 1.0, 10.0)))


def seen(what: str, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"the page does not show: {what}"
        time.sleep(0.2)


def test_a_broken_server_is_seen_to_fall(lab: Lab, tmp_path: Path) -> None:
    url = start_page(lab, print)
    assert url is not None
    with browser.browser() as chrome:
        chrome.get(url)

        def row(name: str) -> dict[str, str]:
            # While the page redraws the table, some of its rows may be missing.
            rows: list[dict[str, str]] = []

            def finds() -> bool:
                rows[:] = [row for row in shown_table(chrome, "servers") if row["server"] == name]
                return bool(rows)

            seen(name, finds)
            return rows[0]

        seen("all servers", lambda: {row["server"] for row in shown_table(chrome, "servers")} == set(SERVER_NAMES))
        lab.start_load(Load(30.0, PATIENCE_S), PAGE)
        seen("requests at all servers", lambda: all(int(row(name)["SYN"]) > 20 for name in SERVER_NAMES))
        before = float(row(BROKEN)["ratio"])
        assert before > 0.2
        assert shown_text(chrome, "out") == ""
        lab.kill_server(BROKEN)
        seen("its ratio fall", lambda: float(row(BROKEN)["ratio"]) < before / 10)
        seen("its state", lambda: row(BROKEN)["state"] == "ejected" and "is ejected" in shown_text(chrome, "out"))
        assert all(row(name)["state"] == "in" for name in SERVER_NAMES if name != BROKEN)
        assert [
            row for row in shown_table(chrome, "events") if row["kind"] == "ejected" and BROKEN in row["what and why"]
        ]
        seen("the counts of the switch", lambda: row(BROKEN)["SYN"] == str(lab.observe().counts[BROKEN].syn))
        chrome.save_screenshot(str(tmp_path / "page.png"))
