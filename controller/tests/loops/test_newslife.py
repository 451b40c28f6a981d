"""Tests of flash-crowd control during a controller's life: programming, adoption, restarts, reloads, status."""

from __future__ import annotations

import re

import pytest
from fakeswitch import FakeSwitch
from finsy.proto import p4r
from live import Running, WriteConfig, rivals, run_once, running, until
from sluice.config.load import load
from sluice.features import CrowdControl, world_of
from sluice.features.crowd.baseline import BaselineFile
from sluice.loops.commands import Refused
from sluice.news import Average, Usual
from sluice.views import status, statustext

NEWS = (
    "news: {mode: production, production: {detection_s: 60, window_s: 60, remember_s: 6.5536},"
    " hosts: [{name: files, address: 10.0.2.77}]}"
)


def default_of(switch: FakeSwitch, alias: str) -> list[int]:
    """Return the parameters of the default action of a table without a key."""
    number = switch.schema.tables[alias].id
    (entry,) = (entry for key, entry in switch.tables.items() if key[0] == number)
    return [int.from_bytes(p.value, "big") for p in entry.action.action.params]


def numbers(switch: FakeSwitch) -> dict[int, int]:
    """Return the numbers of the destinations in the switch, by IPv4 address as an integer."""
    return {
        int.from_bytes(e.match[0].exact.value, "big"): int.from_bytes(e.action.action.params[0].value, "big")
        for e in switch.entries("destinations")
    }


def buckets(switch: FakeSwitch, alias: str) -> dict[int, tuple[int, int]]:
    """Return rate and burst of each of a meter's token buckets, by destination number."""
    number = switch.schema.meters[alias].id
    return {cell[1]: (m.cir, m.cburst) for cell, m in switch.meters.items() if cell[0] == number}


def leave_limit(switch: FakeSwitch, address: int, limit: int) -> None:
    """Write the traces of a former controller's limit, in requests/s, for a destination: metadata and token buckets.

    The bucket for all clients gets 10 requests/s less than the limit, the bucket for remembered clients 15 requests/s.
    """
    entry = next(e for e in switch.entries("destinations") if e.match[0].exact.value == address.to_bytes(4, "big"))
    entry.metadata = f"limit={limit}".encode()
    number = int.from_bytes(entry.action.action.params[0].value, "big")
    for alias, rate in (("destination_limit", limit - 10), ("returning_limit", 15)):
        config = p4r.MeterConfig(cir=rate, cburst=rate // 4, pir=rate, pburst=rate // 4)
        switch.meters[switch.schema.meters[alias].id, number] = config


def lift_limits(switch: FakeSwitch) -> None:
    """Remove all limits from the switch, as a former controller that found no crowd would have done."""
    for entry in switch.entries("destinations"):
        entry.metadata = b""
    for alias in ("destination_limit", "returning_limit"):
        number = switch.schema.meters[alias].id
        for cell in [cell for cell in switch.meters if cell[0] == number]:
            del switch.meters[cell]


WEB, FILES = 0x0A000064, 0x0A00024D


async def test_programs_destinations_and_measurement(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config(more=NEWS)):
        assert numbers(switch) == {WEB: 1, FILES: 2}
        assert default_of(switch, "rate_settings") == [128, 0]
        assert default_of(switch, "sampling") == [0]
        assert [p.value for p in switch.entries("destinations")[0].action.action.params[1:]] == [b"\0", b"\x64"]
        assert not buckets(switch, "destination_limit")


@pytest.mark.parametrize(("refuse", "answer_reset"), [("drop", b"\0"), ("reset", b"\1")])
async def test_refused_requests_are_answered_as_configured(
    switch: FakeSwitch, write_config: WriteConfig, refuse: str, answer_reset: bytes
) -> None:
    async with running(write_config(more=NEWS.replace("{mode: production,", f"{{mode: production, refuse: {refuse},"))):
        assert {e.action.action.params[1].value for e in switch.entries("destinations")} == {answer_reset}


async def test_reload_changes_what_a_refused_request_gets(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config(more=NEWS)) as it:
        write_config(more=NEWS.replace("{mode: production,", "{mode: production, refuse: reset,"))
        await it.controller.reload()
        assert {e.action.action.params[1].value for e in switch.entries("destinations")} == {b"\1"}


async def test_without_news_nothing_is_measured(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config()) as it:
        assert default_of(switch, "rate_settings") == [0, 0]
        assert not switch.entries("destinations")
        assert "news" not in await status.gather(it.controller)


@pytest.mark.parametrize("reloads", [False, True])
async def test_controller_takes_over_what_an_earlier_one_left(
    switch: FakeSwitch, write_config: WriteConfig, reloads: bool
) -> None:
    """The controller adopts the saved baseline when it starts, and when a reload adds flash-crowd control."""
    config = load(write_config(more=NEWS))
    saved, origin = Average(2e5, 1e3, 99), world_of(config)[CrowdControl].view
    assert origin is not None
    origin.restore(Usual(saved, saved, {}))
    BaselineFile().keep(origin)
    async with running(write_config(more="" if reloads else NEWS)) as it:
        if reloads:
            write_config(more=NEWS)
            await it.controller.reload()
        view = it.controller.world[CrowdControl].view
        assert view is not None
        usual = view.usual
        assert usual is not None and usual.ar == saved


async def test_fresh_controller_goes_on_from_the_limit_it_finds(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config(more=NEWS)
    await run_once(config)
    leave_limit(switch, FILES, 50)
    before = buckets(switch, "destination_limit"), buckets(switch, "returning_limit")
    async with running(config) as again:
        assert again.lines[0].endswith("adopted=yes updates=0")
        shown = (await status.gather(again.controller))["news"]
        assert shown["limits"] == [
            {
                "destination": "files (10.0.2.77)",
                "limit_per_s": 50,
                "anybody_per_s": 40,
                "returning_per_s": 15,
            }
        ]
    assert (buckets(switch, "destination_limit"), buckets(switch, "returning_limit")) == before


async def test_switch_that_keeps_no_notes_keeps_its_limit(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config(more=NEWS)
    await run_once(config)
    leave_limit(switch, FILES, 50)
    for entry in switch.entries("destinations"):
        entry.metadata = b""
    async with running(config) as again:
        (shown,) = (await status.gather(again.controller))["news"]["limits"]
        assert (shown["destination"], shown["limit_per_s"]) == ("files (10.0.2.77)", 40)
        assert set(buckets(switch, "destination_limit")) == {2}


BOTH_WAYS = pytest.mark.parametrize(("before", "after"), [("true", "false"), ("false", "true")])
BOTH_MODES = pytest.mark.parametrize("mode", ["production", "paper"])


def aimed(identify: str, mode: str) -> str:
    """Return the options that limit only the hot spot (`identify` "true") or all destinations ("false")."""
    return NEWS.replace("{mode: production,", f"{{mode: {mode}, identify: {identify},")


async def leave_aimed_limit(switch: FakeSwitch, write_config: WriteConfig, news: str) -> None:
    await run_once(write_config(more=news))
    leave_limit(switch, WEB, 50)
    if numbers(switch)[WEB] == numbers(switch)[FILES]:
        for entry in switch.entries("destinations"):
            entry.metadata = b"limit=50"


@BOTH_MODES
async def test_reload_changes_the_size_of_a_limits_buckets(
    switch: FakeSwitch, write_config: WriteConfig, mode: str
) -> None:
    await leave_aimed_limit(switch, write_config, aimed("true", mode))
    async with running(write_config(more=aimed("true", mode))) as it:
        write_config(more=aimed("true", mode).replace("{mode", "{bucket_s: 1, mode"))
        await it.controller.reload()
        made = [*buckets(switch, "destination_limit").values(), *buckets(switch, "returning_limit").values()]
        assert made and all(burst == rate for rate, burst in made)


@BOTH_WAYS
@BOTH_MODES
async def test_reload_takes_back_a_limit_that_was_for_others(
    switch: FakeSwitch, write_config: WriteConfig, before: str, after: str, mode: str
) -> None:
    await leave_aimed_limit(switch, write_config, aimed(before, mode))
    async with running(write_config(more=aimed(before, mode))) as it:
        assert buckets(switch, "destination_limit").keys() == {1}
        write_config(more=aimed(after, mode))
        await it.controller.reload()
        assert not buckets(switch, "destination_limit") and not buckets(switch, "returning_limit")
        assert (await status.gather(it.controller))["news"]["limits"] == []
        assert set(numbers(switch).values()) == ({1, 2} if after == "true" else {1})


@BOTH_WAYS
@BOTH_MODES
async def test_fresh_controller_does_not_go_on_from_a_limit_that_was_for_others(
    switch: FakeSwitch, write_config: WriteConfig, before: str, after: str, mode: str
) -> None:
    await leave_aimed_limit(switch, write_config, aimed(before, mode))
    async with running(write_config(more=aimed(after, mode))) as it:
        assert not buckets(switch, "destination_limit")
        assert (await status.gather(it.controller))["news"]["limits"] == []


async def test_host_with_a_limit_of_its_own_keeps_it_beside_one_for_all_others(
    switch: FakeSwitch, write_config: WriteConfig
) -> None:
    own = aimed("false", "production").replace("10.0.2.77}", "10.0.2.77, limit: {rate_per_s: 20, burst: 5}}")
    async with running(write_config(more=own)):
        assert numbers(switch) == {WEB: 1, FILES: 2}
        assert buckets(switch, "destination_limit") == {2: (20, 5)}
    leave_limit(switch, WEB, 50)
    async with running(write_config(more=own)) as again:
        assert buckets(switch, "destination_limit") == {1: (40, 10), 2: (20, 5)}
        (shown,) = (await status.gather(again.controller))["news"]["limits"]
        assert (shown["destination"], shown["limit_per_s"]) == ("every destination", 50)


@pytest.mark.parametrize("left", [90, None])
async def test_a_controller_that_leads_again_goes_on_from_what_the_other_left(
    switch: FakeSwitch, write_config: WriteConfig, left: int | None
) -> None:
    low, high = rivals(write_config, more=NEWS)
    await run_once(low)
    leave_limit(switch, WEB, 50)
    async with running(low) as again:
        assert buckets(switch, "destination_limit") == {1: (40, 10)}
        async with running(high):
            await until(lambda: again.lines[-1].startswith("sluice: standby"), "the first to stand by")
            lift_limits(switch)
            if left:
                leave_limit(switch, WEB, left)
        await until(lambda: again.ready(2), "the first to lead again")
        assert buckets(switch, "destination_limit") == ({1: (80, 20)} if left else {})
        limits = (await status.gather(again.controller))["news"]["limits"]
        assert [limit["limit_per_s"] for limit in limits] == ([left] if left else [])


async def test_restarted_switch_gets_the_limit_again(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config(more=NEWS)
    await run_once(config)
    leave_limit(switch, WEB, 50)
    async with running(config) as it:
        await switch.restart()
        await until(lambda: it.ready(2), "the second ready line")
        assert buckets(switch, "destination_limit") == {1: (40, 10)}
        assert buckets(switch, "returning_limit") == {1: (15, 3)}


async def test_reload_takes_news_away_and_brings_it_back(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config(more=NEWS)

    async def rewrite(it: Running, more: str) -> None:
        write_config(more=more)
        await it.controller.reload()

    async with running(config) as it:
        await rewrite(it, "")
        assert not switch.entries("destinations")
        assert default_of(switch, "rate_settings") == [0, 0]
        await rewrite(it, NEWS.replace("10.0.2.77", "10.0.2.78").replace("}]}", "}], rate_window_s: 0.125}"))
        assert numbers(switch) == {WEB: 1, FILES + 1: 2}
        assert default_of(switch, "rate_settings") == [16, 0]
        with pytest.raises(Refused, match=r"news\.trace_file has changed"):
            await rewrite(it, NEWS.replace("}]}", "}], trace_file: elsewhere.csv}"))


async def test_status_says_it_in_a_sentence(switch: FakeSwitch, write_config: WriteConfig) -> None:
    news = NEWS.replace(
        "{detection_s: 60, window_s: 60, remember_s", "{detection_s: 0.1, window_s: 0.2, remember_s"
    ).replace("}]}", "}], poll_s: 0.1, bucket_s: 0.1}")
    async with running(write_config(more=news)) as it:
        view = it.controller.world[CrowdControl].view
        assert view is not None
        await until(lambda: view.decision, "a decision")
        switch.count("requests_offered", 2, 7)
        switch.count("requests_admitted", 2, 7)
        shown = await status.gather(it.controller)
        text = statustext.render(shown)
    why = "a flash crowd may raise no alarm: how fast responses usually are is not known yet"
    assert re.search(rf"flash crowds  mode production\n  Normal: [0-9.]+ requests/s, no responses; {why}\.\n", text)
    assert {"name": "files (10.0.2.77)", "offered": 7, "admitted": 7, "refused": 0, "returning": 0} in shown["news"][
        "destinations"
    ]
