"""Tests of balancing decisions, of which each processes the servers and table entries of one service only.

The cost of a decision does not depend on the number of services, and no table of the switch is outdated afterwards.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Collection
from typing import Any, cast

import pytest
from configs import web
from fakeswitch import FakeSwitch, Memory
from finsy import P4TableEntry
from finsy.proto import p4r
from sluice.balance import Balancer, Counts
from sluice.config.load import parse
from sluice.features import Balance, world_of
from sluice.features.balance.decisions import TABLES, balance, touched
from sluice.features.balance.trace import Trace
from sluice.loops.link import Link
from sluice.names import Meter, Register
from sluice.switch.reconcile import Readback, read_back, reconcile
from sluice.switch.registers import Registers
from sluice.switch.session import Session
from virtual import Updates, in_virtual_time

DECISIONS = 3


def service(number: int, servers: int, options: str, more: str = "") -> str:
    """Return service w`number` as a YAML item of the configuration's list, with `servers` servers of its own.

    `options` are options of its balancer, and `more` continues the item after its port.
    """
    pool = ", ".join(f"{{name: s{n}, address: 10.0.2.{20 * number + n}, port: 80}}" for n in range(servers))
    return (
        f"- {{name: w{number}, address: 10.0.0.{100 + number}, port: 80{more}, "
        f"balance: {{{options}, period_s: 1, window_s: 1}}, servers: [{pool}]}}\n"
    )


def looked_at(services: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what DECISIONS decisions of each of `services` equal services process.

    Counted are the weighed servers, the encoded table entries and the updates that are written to the switch. Every
    decision changes weights.
    """
    seen: Counter[str] = Counter()
    weights, encode = Balancer.weights, P4TableEntry.encode_entry

    def counted_weights(self: Balancer, without: Collection[int] = ()) -> dict[int, int]:
        seen["servers weighed"] += len(self.members)
        return weights(self, without)

    def counted_encode(self: P4TableEntry, schema: Any) -> p4r.TableEntry:
        seen["entries made"] += 1
        return encode(self, schema)

    more = "".join(service(number, 2, "mode: production") for number in range(1, services))
    world = world_of(parse(web(period_s=1, window_s=1, mode="production", more=more)))
    memory, updates = Memory(), Updates()
    readback = Readback(entries={}, meters={meter: {} for meter in Meter}, rounded=False)
    link = Link(cast(Session, updates), cast(Registers, memory), readback)

    async def run() -> None:
        await link.apply(world.state())
        updates.written.clear()
        with monkeypatch.context() as patch:
            patch.setattr(Balancer, "weights", counted_weights)
            patch.setattr(P4TableEntry, "encode_entry", counted_encode)
            views = world[Balance].views
            tasks = [
                asyncio.create_task(balance(world, views[service.id], link, service, Trace(None)))
                for service in world.plan.services
            ]
            await asyncio.sleep(0.5)
            for second in range(DECISIONS):
                for server in world.plan.servers:
                    answered = 50 if (server.id + second) % 2 else 100
                    memory.count(Register.LEDGER_SYN, server.id, 100)
                    memory.count(Register.LEDGER_SYNACK, server.id, answered)
                    memory.count(Register.LEDGER_COMPLETED, server.id, answered)
                await asyncio.sleep(1)
            for task in tasks:
                assert not task.done(), task
                task.cancel()

    in_virtual_time(run())
    seen["updates"] = len(updates.written)
    return seen


def test_a_round_looks_at_each_service_as_often_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = looked_at(3, monkeypatch), looked_at(12, monkeypatch)
    assert few["updates"] >= 3 * DECISIONS, "every decision is to change something"
    assert many == Counter({what: 4 * count for what, count in few.items()})


async def test_after_every_decision_the_switch_holds_what_a_look_at_all_would_write(
    switch: FakeSwitch, session: Session
) -> None:
    """After each decision for one service, a comparison of all tables finds nothing left to write.

    Servers lose all weight, are ejected, recover and drain. A new connection has one or two candidate servers.
    """
    source = random.Random(5)
    more = service(1, 5, "mode: paper, delta: 0.99", ", second_look: true")
    more += service(2, 5, "mode: production") + service(3, 20, "mode: production, min_syn: 1")
    kinds: Counter[int] = Counter()
    world = world_of(parse(web(more=more)))
    readback = await read_back(session)
    await reconcile(session, readback, world.state())
    ejected = 0
    counts = {server.id: Counts() for server in world.plan.servers}
    for turn in range(40):
        for each in world.plan.services:
            for server in each.servers:
                answered = source.choice((0, 100)) if turn % 10 < 6 else 100
                counts[server.id] += Counts(syn=100, synack=answered, completed=answered)
            balancer = world[Balance].views[each.id].balancer
            before, writes = balancer.ejected, len(switch.writes)
            balancer.observe(float(turn), counts)
            await reconcile(session, readback, world.state(each), touched(before, balancer.ejected))
            kinds.update(update.type for request in switch.writes[writes:] for update in request.updates)
            ejected += len(balancer.ejected - before)
            assert await reconcile(session, readback, world.state(), TABLES) == 0
        if turn % 8 == 4:
            world[Balance].set_drain("w2/s1", drain=turn % 16 == 4, now_s=float(turn))
            await reconcile(session, readback, world.state())
    assert await reconcile(session, await read_back(session), world.state(), TABLES) == 0

    assert min(kinds[kind] for kind in (p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE)) > 5, kinds
    assert ejected > 5
