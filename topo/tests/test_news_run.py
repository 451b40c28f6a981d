"""Tests of a run: it begins with the controller's first decision, whatever the length of an interval, and its counters
are read until its end."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from topo.labs.crowds import network, run
from topo.labs.crowds.network import TRACE, CrowdLab, CrowdRouter
from topo.labs.crowds.run import META, Run, first_decision, is_done, made, passed_since, sample
from topo.measure.counts import PacketCounts
from topo.plan.crowd.network import FAST, ROUTER, SLOW
from topo.plan.crowd.readings import LinkCounts, Sample
from topo.plan.crowd.scenarios import NETWORK, NONE, Further, Settings
from topo.results import replaced_directory, version
from topo.testbed.errors import SetupError
from topo.testbed.nodes import KERNEL

HEADER = "unix_s,ar_bps,offered_per_s,admitted_per_s,refused_per_s,alarm,limit_per_s,hot_spot,cause\n"

FURTHER = (Further(2, FAST, quiet_per_s=2.0, crowd_per_s=20.0),)


class Lab:
    """A fake lab whose controller decides once, `decides_s` seconds after its start. Its clock advances only by
    calls of time.sleep, and by 100 times their argument."""

    def __init__(self, directory: Path, decides_s: float) -> None:
        self.directory = directory
        self.now_s = 0.0
        self._decides_s = decides_s

    def sleep(self, seconds: float) -> None:
        self.now_s += 100 * seconds
        if self.now_s >= self._decides_s:
            (self.directory / TRACE).write_text(f"{HEADER}{self._decides_s},1,1,1,0,0,,,\n")

    def require_running(self) -> None:
        pass


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    made = Lab(tmp_path, decides_s=64.0)
    monkeypatch.setattr(time, "time", lambda: made.now_s)
    monkeypatch.setattr(time, "sleep", made.sleep)
    return made


def test_the_first_decision_is_waited_for_a_whole_interval(lab: Lab) -> None:
    assert first_decision(cast(CrowdLab, lab), period_s=64.0) == 64.0


def test_a_controller_that_does_not_decide_is_an_error(lab: Lab) -> None:
    with pytest.raises(SetupError, match="has not decided anything in 38 s"):
        first_decision(cast(CrowdLab, lab), period_s=8.0)


@pytest.mark.parametrize("reading_s", [0.0, 0.7])
def test_the_last_sample_has_the_refusals_of_the_whole_load(monkeypatch: pytest.MonkeyPatch, reading_s: float) -> None:
    """The switch refuses one SYN per second during a load of 25.6 s; the last sample contains all refusals, even if
    readings are late."""
    clock = SimpleNamespace(now_s=1000.0)

    def sleep(seconds: float) -> None:
        clock.now_s += seconds

    def ask(command: str) -> object:
        return {"news": {"destinations": [{"name": "bystander (10.0.0.101)", "refused": int(clock.now_s - 1000.0)}]}}

    def usage(pid: int) -> tuple[float, int]:
        return (0.0, pid)

    def link() -> LinkCounts:
        clock.now_s += reading_s
        return LinkCounts(0, 0, 0)

    monkeypatch.setattr(time, "time", lambda: clock.now_s)
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(run, "process_usage", usage)
    process = SimpleNamespace(process=SimpleNamespace(pid=1), ask=ask)
    slow = SimpleNamespace(memory_bytes=lambda: 1)
    lab = SimpleNamespace(
        controlled=True,
        slow=slow,
        require_running=lambda: None,
        link=link,
        received_packets=lambda: int(100 * (clock.now_s - 1000.0)),
        switch=process,
        controller=process,
    )
    settings = Settings(k=1.0, period_s=8.0, before=1, after=1, onset_phase=1.2)
    samples = sample(cast(CrowdLab, lab), 1000.0, settings, lambda left: None)
    assert settings.seconds == pytest.approx(25.6)
    assert samples[-1].time_s >= 25.6 > samples[-2].time_s
    assert (samples[-1].bystander_refused or 0) >= int(samples[-1].time_s)
    assert [reading.received_packets for reading in samples] == [
        int(100 * (reading.time_s + reading_s)) for reading in samples
    ]


def test_without_a_controller_nothing_is_asked_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now_s=1000.0)

    def sleep(seconds: float) -> None:
        clock.now_s += seconds

    monkeypatch.setattr(time, "time", lambda: clock.now_s)
    monkeypatch.setattr(time, "sleep", sleep)
    lab = SimpleNamespace(
        controlled=False,
        slow=SimpleNamespace(memory_bytes=lambda: 1),
        require_running=lambda: None,
        link=lambda: LinkCounts(1, 2, 3),
        received_packets=lambda: 7,
        switch=SimpleNamespace(process=None),
    )
    samples = sample(cast(CrowdLab, lab), 1000.0, Settings(k=8.0, before=1, after=1), lambda left: None)
    assert samples[-1] == Sample(samples[-1].time_s, 1, 2, 3, 0.0, 0, 0.0, 0, 1, None, 7)


class Counting:
    """A fake lab: its bottleneck dropped 30 packets, and its switch lost 12 packets before and 2 after the pipeline."""

    def __init__(self, *, quiet: bool = True) -> None:
        self._quiet = quiet
        self.looked_after = False

    def quiet_packet_counts(self) -> PacketCounts:
        if not self._quiet:
            raise SetupError("no packets at the switch: not so after 10 s")
        return PacketCounts(received=1010, sent=960, forwarded=993, dropped=5, punted=1)

    def link(self) -> LinkCounts:
        return LinkCounts(500, 1, 40)

    def require_running(self) -> None:
        self.looked_after = True


def test_what_the_link_dropped_was_not_lost_by_the_switch() -> None:
    before = PacketCounts(received=10, sent=9, forwarded=10, dropped=0, punted=1)
    lab = Counting()
    assert passed_since(cast(CrowdLab, lab), before, LinkCounts(0, 0, 10)) == {
        "received": 1000,
        "dropped": 5,
        "lost_before": 12,
        "lost_after": 2,
    }
    unrest = Counting(quiet=False)
    assert passed_since(cast(CrowdLab, unrest), before, LinkCounts(0, 0, 10)) is None
    assert unrest.looked_after, "what has ended is named"


def test_the_control_run_has_no_switch_in_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_SWITCH", "/nowhere/sluice-switch")
    version.cache_clear()
    assert len(version(KERNEL)) == 16
    with pytest.raises(SetupError, match="is not there"):
        version("embedded")


def test_in_the_control_run_the_servers_are_asked_themselves() -> None:
    def shown(lab: CrowdLab) -> dict[str, str]:
        return {name: f"{address}:{port}" for name, (address, port) in lab.places.items()}

    lab = CrowdLab(KERNEL, Settings(), SLOW, further=FURTHER)
    assert lab.switch_class() is CrowdRouter and not lab.controlled
    assert shown(lab) == {"target": "10.0.12.1:80", "bystander": "10.0.13.1:80", "further-2": "10.0.11.1:8082"}
    with_switch = CrowdLab("embedded", Settings(), FAST, further=FURTHER)
    assert list(shown(with_switch).values()) == ["10.0.0.100:80", "10.0.0.101:80", "10.0.0.103:80"]


class Imagined(CrowdLab):
    """A fake lab without a real network; if `router` is False, building the network fails."""

    def __init__(self, *, router: bool) -> None:
        super().__init__("embedded", Settings(), FAST)
        self._router = router
        self.controlled = False

    def pid(self, host: str) -> int:
        del host
        return 1

    def _prepare(self) -> None: ...

    def _build_network(self, hosts: object, more: object = None) -> None:
        del hosts, more
        if not self._router:
            raise SetupError("no router")
        self.switch = cast(Any, SimpleNamespace(intfs={ROUTER.port: SimpleNamespace(name="eth0")}))

    def _route(self) -> None: ...

    def _start_servers(self) -> None: ...

    def _meet(self) -> None: ...


@pytest.mark.parametrize("router", [True, False])
def test_who_opens_a_lab_is_as_nice_behind_it_as_before(monkeypatch: pytest.MonkeyPatch, *, router: bool) -> None:
    niceness = [3]

    def getpriority(which: int, who: int) -> int:
        assert (which, who) == (os.PRIO_PROCESS, 0)
        return niceness[-1]

    def setpriority(which: int, who: int, priority: int) -> None:
        assert (which, who) == (os.PRIO_PROCESS, 0)
        niceness.append(priority)

    def nothing(*what: object) -> None:
        del what

    monkeypatch.setattr(os, "getpriority", getpriority)
    monkeypatch.setattr(os, "setpriority", setpriority)
    monkeypatch.setattr(network, "set_bottleneck", nothing)
    try:
        with Imagined(router=router):
            assert niceness[-1] == network.PRIORITY
    except SetupError:
        assert not router
    assert niceness == [3, network.PRIORITY, 3]


def test_a_directory_of_results_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    place = tmp_path / "below/run"
    for content in ("first", "second"):
        with replaced_directory(place) as partial:
            (partial / content).write_text("")
        assert [path.name for path in place.iterdir()] == [content]
    with pytest.raises(KeyboardInterrupt), replaced_directory(place) as partial:
        (partial / "third").write_text("")
        raise KeyboardInterrupt
    assert [path.name for path in place.iterdir()] == ["second"]
    with replaced_directory(place) as partial:
        assert not list(partial.iterdir())


def test_an_end_while_a_directory_is_replaced_leaves_no_half_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt during the removal of the old directory leaves the complete new one. A half-removed directory would
    count as complete as long as it contains the file that identifies the run."""
    place = tmp_path / "run"
    with replaced_directory(place) as partial:
        (partial / "meta").write_text("old")
        (partial / "outcomes").write_text("old")

    def interrupted(directory: Path, *, ignore_errors: bool) -> None:
        del ignore_errors
        if directory.exists():
            (directory / "outcomes").unlink()
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "rmtree", interrupted)
        with replaced_directory(place) as partial:
            (partial / "meta").write_text("new")
            (partial / "outcomes").write_text("new")
    assert {path.name: path.read_text() for path in place.iterdir()} == {"meta": "new", "outcomes": "new"}
    with replaced_directory(place):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["run"], "what was left is put away by the next one"


def test_an_end_between_the_two_renames_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "run"
    with replaced_directory(place) as partial:
        (partial / "outcomes").write_text("old")
    rename = Path.rename

    def interrupted(path: Path, target: Path) -> Path:
        if target == place:
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "rename", interrupted)
        with replaced_directory(place):
            pass
    with pytest.raises(SetupError), replaced_directory(place):
        raise SetupError("the next run fails, too")
    assert (place / "outcomes").read_text() == "old"


def test_a_run_records_its_time_and_program(tmp_path: Path) -> None:
    run = Run(NETWORK, NONE, NETWORK.settle(Settings()))
    older = run.identity(KERNEL) | {"start": 1.8e9}
    (tmp_path / META).write_text(json.dumps(older))
    assert made(tmp_path) == {"began": 1.8e9, "load": None, "program": ""}
    assert is_done(run, KERNEL, tmp_path) and is_done(run, KERNEL, tmp_path, 1.8e9)
    assert not is_done(run, KERNEL, tmp_path, 1.8e9 + 1)
    (tmp_path / META).write_text(json.dumps(older | {"load": 2.5, "program": "abc1234"}))
    assert made(tmp_path) == {"began": 1.8e9, "load": 2.5, "program": "abc1234"}
