"""Tests of stage `balance`: servers are drawn by weight, and weights are replaced while packets arrive."""

from __future__ import annotations

import math
import threading
from collections import Counter as Tally
from collections.abc import Mapping

from harness import bulk, entries
from harness.base import Outcome, StageTest, unpinned, unpinned_mid
from harness.flow import Flow
from harness.plan import CLIENT, EMPTY, S1, S2, S3, WEB, Server
from harness.slots import Tuple5
from sluice.names import Counter, DropReason, Register

DRAWS = 1200
SERVERS = {server.host.address: server for server in WEB.servers}


def drawn(outcome: Outcome) -> dict[tuple[str, int], Server]:
    """Return the server that each connection reached, by the client's address and port."""
    return {bulk.source_of(frame): SERVERS[bulk.destination(frame)] for _, frame in outcome.frames}


def critical(freedom: int) -> float:
    """Return the chi-square value that one run in a thousand exceeds (Wilson and Hilferty's approximation)."""
    spread = 2 / (9 * freedom)
    return freedom * (1 - spread + 3.0902 * math.sqrt(spread)) ** 3


class Drawing(StageTest):
    """Base class of the tests with many draws; all runs use the same connections, so the outcomes do not vary."""

    def assertProportional(self, servers: Mapping[tuple[str, int], Server], weights: Mapping[Server, int]) -> None:
        """Assert that the draws are distributed like the weights, by a chi-square test at 0.1 %."""
        tally = Tally(servers.values())
        self.assertLessEqual(set(tally), set(weights), "a server without weight was drawn")
        total, draws = sum(weights.values()), tally.total()
        chi = sum((tally[s] - draws * w / total) ** 2 / (draws * w / total) for s, w in weights.items())
        self.assertLess(chi, critical(len(weights) - 1), f"{tally} is not spread like {weights}")

    def opens_all(self, keys: list[Tuple5]) -> dict[tuple[str, int], Server]:
        """Send a SYN of each connection; assert that each reaches a server and is pinned or counted as not pinned.

        Return the server of each connection.
        """
        outcome = self.burst(CLIENT, bulk.segments(WEB, S1, "S", keys))
        self.assertEqual(len(outcome.frames), len(keys))
        changes = outcome.changes
        self.assertEqual(changes[Counter.VERDICTS, DropReason.NONE], len(keys))
        self.assertEqual(changes[Counter.OFFERED, WEB.id], len(keys))
        pinned = changes[Counter.CLAIMED, WEB.id] + changes.get((Counter.UNPINNED_NEW, WEB.id), 0)
        self.assertEqual(pinned, len(keys))
        servers = drawn(outcome)
        for server, number in Tally(servers.values()).items():
            self.assertEqual(changes[Register.LEDGER_SYN, server.id], number)
        self.assertTrue(all(bulk.has_scapys_checksums(frame) for _, frame in outcome.frames[::50]))
        return servers


class RatiosSpread(Drawing):
    """SYNs are distributed according to the weights by R."""

    def runTest(self) -> None:
        weights = {S1: 5, S2: 2, S3: 1}
        self.weigh(WEB, weights)
        self.assertProportional(self.opens_all(bulk.keys(WEB, DRAWS, seed=1)), weights)


class RatiosFine(Drawing):
    """SYNs are distributed by weights of the size that the controller writes: large numbers with a fixed sum."""

    def runTest(self) -> None:
        weights = {S1: 85, S2: 86, S3: 85}
        self.weigh(WEB, weights)
        self.assertProportional(self.opens_all(bulk.keys(WEB, DRAWS, seed=2)), weights)


class CapacitiesSpread(Drawing):
    """Packets of connections without a pin are distributed according to the weights by capacity."""

    def runTest(self) -> None:
        weights = {S1: 1, S2: 3, S3: 4}
        self.weigh_capacity(WEB, weights)
        keys = bulk.keys(WEB, DRAWS, seed=3)
        outcome = self.burst(CLIENT, bulk.segments(WEB, S1, "A", keys))
        self.assertEqual(
            outcome.changes, {(Counter.VERDICTS, DropReason.NONE): len(keys), unpinned_mid(WEB): len(keys)}
        )
        self.assertProportional(drawn(outcome), weights)


class DrawsAreIndependent(Drawing):
    """The selectors by R and by capacity draw independently.

    The connections that the selector by capacity sends to one server are distributed equally by the selector by R.
    """

    def runTest(self) -> None:
        equal = {S1: 1, S2: 1}
        self.weigh(WEB, equal)
        self.weigh_capacity(WEB, equal)
        keys = bulk.keys(WEB, DRAWS, seed=4)
        by_capacity = drawn(self.burst(CLIENT, bulk.segments(WEB, S1, "A", keys)))
        by_ratio = self.opens_all(keys)
        for server in equal:
            self.assertProportional({key: by_ratio[key] for key in by_ratio if by_capacity[key] is server}, equal)


class DrawIsTheHash(Drawing):
    """The switch selects the member whose index is the CRC-32 of the connection's fields modulo the sum of weights.

    In the order of the members, each member has as many successive indices as its weight.
    """

    def runTest(self) -> None:
        weights = {S1: 3, S2: 1, S3: 4}
        copies = [server for server, weight in weights.items() for _ in range(weight)]
        self.weigh(WEB, weights)
        self.weigh_capacity(WEB, weights)
        keys = bulk.keys(WEB, 200, seed=5)
        by_capacity = drawn(self.burst(CLIENT, bulk.segments(WEB, S1, "A", keys)))
        by_ratio = self.opens_all(keys)
        for key in keys:
            at = key.client, key.client_port
            self.assertIs(by_ratio[at], copies[key.drawn_by_ratio(len(copies))])
            self.assertIs(by_capacity[at], copies[key.drawn_by_capacity(len(copies))])


class SameConnectionSameDraw(Drawing):
    """The draw depends on the connection alone: all packets of a connection that has no pin reach one server."""

    def runTest(self) -> None:
        self.weigh_capacity(WEB, {S1: 1, S2: 1, S3: 1})
        keys = bulk.keys(WEB, 100, seed=6)
        first = drawn(self.burst(CLIENT, bulk.segments(WEB, S1, "A", keys)))
        second = drawn(self.burst(CLIENT, bulk.segments(WEB, S1, "FA", keys)))
        self.assertEqual(first, second)


class WeightsOfRatiosOnly(Drawing):
    """A change of the weights by R does not move packets without a pin, which use the weights by capacity."""

    def runTest(self) -> None:
        self.weigh_capacity(WEB, {S1: 1, S2: 1, S3: 1})
        keys = bulk.keys(WEB, 100, seed=7)
        before = drawn(self.burst(CLIENT, bulk.segments(WEB, S1, "A", keys)))
        self.weigh(WEB, {S2: 9, S3: 1})
        self.assertEqual(drawn(self.burst(CLIENT, bulk.segments(WEB, S1, "A", keys))), before)


class MemberLeftOut(Drawing):
    """A server without weight is not in the group, and receives no new connection."""

    def runTest(self) -> None:
        self.weigh(WEB, {S1: 1, S3: 1})
        self.assertEqual(set(self.opens_all(bulk.keys(WEB, 200, seed=8)).values()), {S1, S3})


class NoServer(StageTest):
    """A packet to a service without servers has its own drop reason; it is neither pinned nor counted for a server."""

    def runTest(self) -> None:
        flow = Flow(EMPTY, S1)
        offered, unpinned_new = (Counter.OFFERED, EMPTY.id), (Counter.UNPINNED_NEW, EMPTY.id)
        self.drops(CLIENT, flow.syn(), DropReason.NO_SERVER, offered, unpinned_new)
        self.assertNotPinned(flow.key)
        self.drops(CLIENT, flow.ack(), DropReason.NO_SERVER, unpinned_mid(EMPTY))


class RatiosGone(StageTest):
    """If a service has no group with weights by R, the switch uses the weights by capacity."""

    def runTest(self) -> None:
        self.delete(entries.ratios(WEB, {S1: 1}))
        flow = Flow(WEB, S3)
        self.client_sends(flow, flow.syn(), unpinned(WEB, S3))
        self.assertNotPinned(flow.key)


class CapacitiesGone(StageTest):
    """If a service has no group with weights by capacity, packets of connections without a pin are dropped.

    New connections are pinned as before.
    """

    def runTest(self) -> None:
        self.delete(entries.capacities(WEB, {S3: 1}))
        flow = self.opens(Flow(WEB, S1))
        self.client_sends(flow, flow.data())
        self.drops(CLIENT, Flow(WEB, S1, client_port=1).ack(), DropReason.NO_SERVER, unpinned_mid(WEB))


class RewriteUnderTraffic(Drawing):
    """While weights are rewritten as fast as possible, every SYN uses a complete group, either an old or a new one.

    No SYN is dropped or leaves by a port without servers (an empty group would select port 0). Each connection is
    pinned to the server that its SYN reached.
    """

    def runTest(self) -> None:
        keys = bulk.keys(WEB, 2000, seed=9)
        groups = ({S1: 200, S2: 56}, {S2: 1, S3: 255}, {S3: 1}, {S1: 100, S2: 56, S3: 100})
        self.weigh(WEB, groups[0])
        finished = threading.Event()
        rewrites = 0
        failures: list[Exception] = []

        def rewrite() -> None:
            nonlocal rewrites
            try:
                while not finished.is_set():
                    rewrites += 1
                    self.switch.modify([entries.ratios(WEB, groups[rewrites % len(groups)])])
            except Exception as error:  # the test's own thread reports it
                failures.append(error)

        writer = threading.Thread(target=rewrite, name="rewriter")
        writer.start()
        try:
            servers = self.opens_all(keys)
        finally:
            finished.set()
            writer.join()
        self.assertEqual(failures, [])
        self.assertGreater(rewrites, len(groups), "not every group came into force while SYNs arrived")
        self.assertEqual(set(servers.values()), set(WEB.servers))
        # Only the last connections are checked: on a slow target the pending timeout of the first may have expired.
        for key in keys[-100:]:
            pins = self.pins(key)
            self.assertEqual([pin.server for pin in pins], [servers[key.client, key.client_port].id])
