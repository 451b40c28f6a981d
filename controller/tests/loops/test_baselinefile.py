"""Tests of the baseline file, from which a controller that starts during a crowd takes the usual load.

With the file the controller raises the alarm; an invalid file is ignored.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sluice.config.load import parse
from sluice.features import CrowdControl, world_of
from sluice.features.crowd.baseline import EVERY_S, LIFE_S, BaselineFile
from sluice.features.crowd.view import NewsView
from sluice.news import Average, Usual
from virtual import Run

WEB, HOST = "10.0.0.100", "10.0.2.77"
BEGAN_S = 1.7e9
STOP_S = 40.0
IGNORED, NOT_KEPT, AGAIN = "baseline is not taken over", "baseline is not kept", "baseline is kept again"


def options(path: Path, mode: str = "production") -> str:
    return (
        f"{{mode: {mode}, production: {{baseline_s: 20}}, baseline_file: {path},"
        " hosts: [{name: files, address: 10.0.2.77}]}"
    )


def usual(now: float) -> dict[str, float]:
    return {WEB: 30.0, HOST: 10.0}


def crowd(now: float) -> dict[str, float]:
    return {WEB: 230.0, HOST: 10.0}


def clock(began_s: float) -> Callable[[], float]:
    """Return a clock of Unix time that starts at `began_s` and advances with the virtual event loop."""

    def now_s() -> float:
        try:
            return began_s + asyncio.get_running_loop().time()
        except RuntimeError:
            return began_s

    return now_s


def learn(path: Path, end_s: float = STOP_S) -> Run:
    """Run a controller on usual traffic, then kill it, so that it does not write the file when it ends."""
    return Run(options(path), usual, baseline=BaselineFile(clock(BEGAN_S))).until(end_s)


def restart(path: Path, *, after_s: float = 60.0, mode: str = "production", **changes: Any) -> Run:
    """Start a second controller `after_s` seconds after the start of the first, and run it for 12 s in a crowd."""
    run = Run(options(path, mode), crowd, baseline=BaselineFile(clock(BEGAN_S + after_s)), **changes)
    return run.until(12)


def alarms(run: Run) -> list[float]:
    return [d.time_s for d in run.decisions if d.detection.alarm]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "usual"


@pytest.fixture
def file(path: Path) -> dict[str, Any]:
    """Return the content of the baseline file that a controller has written."""
    learn(path)
    return json.loads(path.read_text())


def test_a_controller_that_starts_in_a_crowd_raises_the_alarm_of_one_that_never_stopped(path: Path) -> None:
    never = Run(options(path), lambda now: usual(now) if now < STOP_S else crowd(now)).until(STOP_S + 12)
    learn(path)
    run = restart(path)
    assert alarms(never) and alarms(run)
    assert alarms(run)[0] <= alarms(never)[0] - STOP_S + 1
    assert [set(d.limits) for d in run.decisions][-1] == [set(d.limits) for d in never.decisions][-1]
    assert run.decisions[0].detection.request_average == pytest.approx(40, rel=0.2)
    assert not any(path.parent.glob("*.new"))


def test_without_a_file_it_raises_none_and_says_nothing_of_it(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert not alarms(restart(path))
    assert IGNORED not in caplog.messages


def test_it_is_kept_beside_the_control_socket_unless_named(tmp_path: Path) -> None:
    news = "news: {mode: production}"
    socket = tmp_path / "sluice.sock"
    for text, where in (
        (news, tmp_path / "sluice.sock.baseline"),
        (f"news: {options(tmp_path / 'x')}", tmp_path / "x"),
    ):
        view = known(text, socket)
        BaselineFile().keep(view)
        assert where.stat().st_mode & 0o777 == 0o600


def test_what_was_learned_before_a_reload_is_not_kept_as_that_of_other_services(tmp_path: Path) -> None:
    now_s, path = [BEGAN_S], tmp_path / "usual"
    file = BaselineFile(lambda: now_s[0])

    def kept(share: float) -> str:
        now_s[0] += EVERY_S
        file.keep(known(f"news: {{mode: production, baseline_file: {path}, fast_share: {share}}}", tmp_path / "x"))
        return path.read_text()

    first = kept(0.1)
    changed = [kept(0.2) for _ in range(8)]  # only the last of these calls, 64 s after the first call, writes the file
    assert changed[:7] == [first] * 7
    assert json.loads(changed[7])["origin"]["fast_share"] == 0.2


@pytest.mark.parametrize(("away_s", "requests_per_s"), [(LIFE_S - 60, 40.0), (LIFE_S + 60, None)])
def test_who_stood_by_for_too_long_forgets_what_was_usual(
    path: Path, away_s: float, requests_per_s: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    now_s = [BEGAN_S]
    file, view = BaselineFile(lambda: now_s[0]), known(f"news: {options(path)}", path.with_name("x"))
    file.keep(view)
    view.stand_by()
    now_s[0] += away_s
    file.expire(view)
    file.restore(view)
    usual = view.usual
    assert (usual and usual.requests.average) == requests_per_s
    assert ("baseline is too old" in caplog.messages) == (requests_per_s is None)
    file.keep(view)
    assert path.exists() and json.loads(path.read_text())["unix_s"] == (now_s[0] if usual else BEGAN_S)


def test_what_was_taken_over_is_not_too_old_before_the_first_decision(path: Path) -> None:
    """A controller takes over a baseline from the file, and loses its switch before its first decision.

    When it leads the switch again, the baseline is still valid, although the file is missing.
    """
    BaselineFile(lambda: BEGAN_S).keep(known(f"news: {options(path)}", path.with_name("x")))
    file, view = BaselineFile(lambda: BEGAN_S + 60), fresh(f"news: {options(path)}", path.with_name("x"))
    for _ in range(2):
        file.expire(view)
        file.restore(view)
        path.unlink(missing_ok=True)
        assert view.usual is not None


def test_who_stood_by_for_too_long_takes_over_what_another_controller_left(path: Path) -> None:
    now_s = [BEGAN_S]
    file, view = BaselineFile(lambda: now_s[0]), known(f"news: {options(path)}", path.with_name("x"))
    file.keep(view)
    now_s[0] += 2 * LIFE_S
    other = fresh(f"news: {options(path)}", path.with_name("x"))
    other.restore(Usual(Average(2e5, 1e3, 64), Average(99.0, 1.0, 64), {}))
    BaselineFile(lambda: now_s[0] - 5).keep(other)
    file.expire(view)
    file.restore(view)
    assert view.usual is not None and view.usual.requests.average == 99.0


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user: needs root")
def test_a_file_of_another_user_is_not_taken_over(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    learn(path)
    os.chown(path, 4242, 4242)
    assert not alarms(restart(path))
    assert IGNORED in caplog.messages


def known(news: str, socket: Path) -> NewsView:
    """Return flash-crowd control that has learned a baseline."""
    view = fresh(news, socket)
    average = Average(40.0, 1.0, 64)
    view.restore(Usual(Average(2e5, 1e3, 64), average, {b"": average}))
    return view


def fresh(news: str, socket: Path) -> NewsView:
    from configs import web

    view = world_of(parse(web(control=str(socket), more=news)))[CrowdControl].view
    assert view is not None
    return view


def test_a_crowd_teaches_nothing_but_keeps_the_file_young(path: Path) -> None:
    """In a crowd that lasts hours the controller's own baseline stays valid, so the file's time stamp is renewed."""
    before = learn(path)
    assert before.view.usual is not None
    long = Run(options(path), crowd, baseline=BaselineFile(clock(BEGAN_S + 60))).until(60)
    assert long.decisions[-1].limits
    saved = json.loads(path.read_text())
    assert saved["unix_s"] > BEGAN_S + 60 + 60 - 2 * EVERY_S
    assert saved["requests_per_s"]["average"] == pytest.approx(40, rel=0.2)


def write(path: Path, file: dict[str, Any], *at: str, value: object) -> None:
    """Write the file after replacing the value at a path of JSON keys (`at`)."""
    node = file
    for name in at[:-1]:
        node = node[name]
    node[at[-1]] = value
    path.write_text(json.dumps(file))


UNFIT: dict[str, tuple[tuple[str, ...], object, str]] = {
    "version": (("version",), 2, "version 2; this controller reads 1"),
    "no version": (("version",), None, "version None"),
    "service": (
        ("origin", "services"),
        ["10.9.9.9:80"],
        "of another services: ('10.9.9.9:80',), here ('10.0.0.100:80'",
    ),
    "switch": (("origin", "switch"), "10.9.9.9:9559", "of another switch"),
    "measurement": (("origin", "rate_window_s"), 2.0, "of another rate_window_s: 2.0, here 1.0"),
    "negative": (("ar_bps", "average"), -1.0, "damaged: ar_bps.average"),
    "infinite": (("ar_bps", "average"), float("inf"), "damaged: ar_bps.average"),
    "empty average": (("requests_per_s", "count"), 0, "damaged: requests_per_s.count"),
    "wrong name": (("destinations",), {"web": None}, "damaged: destinations"),
    "something more": (("more",), 1, "damaged: more"),
}


@pytest.mark.parametrize("what", UNFIT)
def test_a_file_that_does_not_fit_is_said_and_ignored(
    what: str, path: Path, file: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    at, value, reason = UNFIT[what]
    write(path, file, *at, value=value)
    run = restart(path)
    assert not alarms(run)
    (record,) = [entry for entry in caplog.records if entry.message == IGNORED]
    assert record.levelno == logging.WARNING
    assert reason in vars(record)["error"]
    assert vars(record)["file"] == str(path)


@pytest.mark.parametrize(
    ("after_s", "reason"),
    [(STOP_S + LIFE_S + 60, "stale: 36"), (-60, "ahead of the clock")],
)
def test_a_file_of_long_ago_or_of_another_clock_is_ignored(
    after_s: float, reason: str, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    learn(path)
    assert not alarms(restart(path, after_s=after_s))
    (record,) = [entry for entry in caplog.records if entry.message == IGNORED]
    assert reason in vars(record)["error"]


def test_one_of_an_hour_is_young_enough(path: Path) -> None:
    learn(path)
    assert alarms(restart(path, after_s=LIFE_S))


def test_every_truncation_of_it_is_ignored_and_replaced(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    learn(path)
    whole = path.read_bytes()
    socket = path.with_name("sluice.sock")
    for end in range(1, len(whole) - 2, 7):
        path.write_bytes(whole[:end])
        caplog.clear()
        view = fresh(f"news: {options(path)}", socket)
        BaselineFile(clock(BEGAN_S + 60)).restore(view)
        assert IGNORED in caplog.messages
        assert view.usual is None
    learn(path)
    assert alarms(restart(path)), "half a file of its own is written over"


@settings(max_examples=200, deadline=None)
@given(content=st.binary(max_size=200) | st.binary(max_size=200).map(lambda rest: b'{"sluice": "baseline"' + rest))
def test_no_content_ends_the_controller(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    view = fresh(f"news: {options(path)}", path.with_name("sluice.sock"))
    BaselineFile().restore(view)
    assert view.usual is None


@pytest.mark.parametrize("content", ["root:x:0:0:root:/root:/bin/bash\n", '{"version": 1}', "{" * 100_000])
def test_another_programs_file_is_neither_read_nor_written_over(
    content: str, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_text(content)
    run = learn(path)
    assert run.view.usual is not None
    assert path.read_text() == content
    assert caplog.messages.count(IGNORED) == caplog.messages.count(NOT_KEPT) == 1
    said = [vars(entry)["error"] for entry in caplog.records if entry.message == NOT_KEPT]
    assert said == ["there is a file that is no baseline: remove it, or name another news: baseline_file"]


def test_a_pipe_is_not_waited_for(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    os.mkfifo(path)
    learn(path, 12)
    assert IGNORED in caplog.messages and NOT_KEPT in caplog.messages
    assert path.is_fifo()


def test_a_folder_that_cannot_be_written_is_said_once_and_again_when_it_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Control continues without a writable folder, and writes the file as soon as the folder is writable.

    A missing folder takes the place of a folder that is not writable, because root may write everywhere.
    """
    path = tmp_path / "later" / "usual"
    run = Run(options(path), usual, baseline=BaselineFile(clock(BEGAN_S)))

    def arrivals(now: float) -> dict[str, float]:
        if now > 35:
            path.parent.mkdir(exist_ok=True)
        return usual(now)

    run.arrivals = arrivals
    run.until(50)
    said = [text for text in caplog.messages if text in (NOT_KEPT, AGAIN)]
    assert said == [NOT_KEPT, AGAIN]
    assert run.decisions[-1].time_s >= 49, "control went on"
    assert alarms(restart(path))


def test_a_full_disk_leaves_the_old_file_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If the new file cannot be written completely, the old file stays; /dev/full takes the place of the new file.

    The device /dev/full can be opened, but every write to it fails.
    """
    learn(path)
    old, opened = path.read_text(), os.open

    def full(name: Any, flags: int, *rest: int) -> int:
        descriptor = opened(name, flags, *rest)
        if str(name).endswith(".new"):
            os.close(descriptor)
            return opened("/dev/full", os.O_WRONLY)
        return descriptor

    monkeypatch.setattr(os, "open", full)
    run = learn(path)
    monkeypatch.undo()
    (record,) = [entry for entry in caplog.records if entry.message == NOT_KEPT]
    assert os.strerror(errno.ENOSPC) in vars(record)["error"]
    assert path.read_text() == old
    assert not any(path.parent.glob("*.new"))
    assert run.decisions[-1].time_s >= STOP_S - 1


@pytest.mark.parametrize("mode", ["paper", "static"])
def test_published_control_neither_reads_nor_writes_it(mode: str, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Paper mode and static mode follow the publication, whose alarm starts without a baseline."""
    path.write_text("no baseline")
    restart(path, mode=f"{mode}, period_s: 2")
    assert path.read_text() == "no baseline"
    assert not caplog.messages
