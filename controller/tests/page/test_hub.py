"""Tests of the part of the page that reads the control socket."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from fakecontrol import FakeControl, controlled
from live import until
from pagestatus import server, service, status
from sluice.page import hub as hubs
from sluice.page.hub import Hub, pause_s, recent
from sluice.page.rates import Sample

EVENT = {"time": 1.0, "kind": "drain", "text": "web/s1 drains"}


async def test_nothing_is_read_without_viewers_and_once_for_all(tmp_path: Path) -> None:
    async with controlled(tmp_path / "s", FakeControl(status(service("web", server("s1"))), [EVENT])) as fake:
        hub, counts = Hub(str(tmp_path / "s"), 0.01), {"a": 0, "b": 0}

        def tell(key: str) -> None:
            counts[key] += 1

        hub.join("a", lambda: tell("a"))
        hub.join("b", lambda: tell("b"))
        await until(lambda: min(counts.values()) >= 3 and hub.events, "both viewers to be told")
        assert fake.asked.count("events") == 1
        assert fake.asked.count("status") <= max(counts.values()) + 1, "no reading for each viewer"
        fake.tell(EVENT | {"text": "next"})
        await until(lambda: hub.events[-1]["text"] == "next", "the event")
        hub.leave("a")
        hub.leave("b")
        await asyncio.sleep(0)
        asked = len(fake.asked)
        await asyncio.sleep(0.1)
        assert len(fake.asked) == asked


async def test_a_controller_that_goes_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "s"
    hub = Hub(str(path), 0.01)
    hub.join("a", lambda: None)
    await until(lambda: hub.error, "the error")
    assert hub.error == f"no controller listens on {path}; start one with `sluice run`"
    for number in range(2):
        event = EVENT | {"text": str(number)}
        async with controlled(path, FakeControl(status(service("web", server("s1", syn=number))), [event])):
            await until(lambda: not hub.error, "the error to go")
            await until(lambda event=event: list(hub.events) == [event], "the events of this one, and no others")
        await until(lambda: hub.error, "the error again")
    hub.leave("a")


async def test_a_status_that_is_none_ends_nothing(tmp_path: Path) -> None:
    async with controlled(tmp_path / "s", FakeControl({"services": [{"name": "web"}]})) as fake:
        hub = Hub(str(tmp_path / "s"), 0.01)

        def fail() -> None:
            raise RuntimeError("a viewer that cannot show it")

        hub.join("a", fail)
        await until(lambda: "internal error: KeyError" in hub.error, "the error")
        fake.status = status(service("web", server("s1")))
        await until(lambda: hub.reading is not None and not hub.error, "the next reading")
        fake.status = {"role": "standby", "switch": "a:1", "device_id": 1, "reprogrammed": 0}
        await until(lambda: hub.error == "the controller does not lead: standby", "the role")
        hub.leave("a")


def test_the_longest_pause_leaves_no_gap_and_another_visit_does() -> None:
    sample = Sample(100.0, status())
    assert recent(sample, 100.0 + pause_s(2.0, 9.0) + 5.0) is sample
    assert recent(sample, 200.0) is None
    assert recent(None, 1.0) is None


def test_much_work_is_done_less_often() -> None:
    assert (pause_s(2.0, 0.01), pause_s(2.0, 0.1), pause_s(2.0, 9.0)) == (2.0, 6.0, 15.0)


async def test_what_viewers_are_sent_is_work_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's process reads a status, then serialises it for viewers; both steps count as work.

    More work lengthens the pause before the next reading.
    """
    burnt_s, works = 0.05, list[float]()

    def burn() -> None:
        until_s = time.process_time() + burnt_s
        while time.process_time() < until_s:
            pass

    def tell() -> None:
        asyncio.get_running_loop().call_soon(burn)

    def pause(period_s: float, work_s: float) -> float:
        works.append(work_s)
        return period_s

    monkeypatch.setattr(hubs, "pause_s", pause)
    async with controlled(tmp_path / "s", FakeControl(status(service("web", server("s1"))))):
        hub = Hub(str(tmp_path / "s"), 0.01)
        hub.join("a", tell)
        await until(lambda: works, "a reading")
        hub.leave("a")
    assert works[0] >= burnt_s
