"""Tests of restarts: a restarted controller reads all state from the switch; a standby controller changes nothing."""

from __future__ import annotations

from finsy import P4MeterEntry
from harness import entries
from harness.base import AWAIT_S, StageTest
from harness.client import Client, NotPrimary
from harness.flow import Flow
from harness.plan import CLIENT, CLIENT_HOST, S1, S2, S3, UPLINK_HOST, WEB
from harness.probes import between
from sluice.names import Meter, PinState


class Takeover(StageTest):
    """A new primary with a higher election id reads tables, timeouts, meters and the program; packets still pass."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.weigh(WEB, {S2: 200, S3: 56})
        self.set_timers(idle=5000, pending=100, answered=200, linger=30)
        self.meter(Meter.ADMISSION, WEB.id, cir=1000, cburst=10, pir=1000, pburst=20)
        old = self.switch.client
        state, counts = self.switch.state(), self.switch.counts()
        new = self.switch.session(old.election_id + 1)
        try:
            self.assertTrue(new.is_primary)
            self.assertFalse(old.await_arbitration(), "the old primary must be notified that it is no longer primary")
            self.assertEqual(self.switch.state(new), state)
            self.assertEqual(self.switch.counts(), counts)
            self.assertEqual(new.pipeline_cookie(), self.switch.schema.p4cookie)
            self.assertEqual(self._bursts(new), (10, 20))
            with self.assertRaises(NotPrimary):
                self.switch.modify([entries.ratios(WEB, {S1: 1})])
            self.assertEqual(self.switch.state(), state)
            self.client_sends(flow, flow.data())
            self.assertPinned(flow, PinState.ESTABLISHED)
        finally:
            new.close()
            old.take_over(old.election_id + 2)
        self.assertTrue(old.is_primary)
        self.assertEqual(self.switch.state(), state)
        self.client_sends(flow, flow.data())

    @staticmethod
    def _bursts(client: Client) -> tuple[int, int]:
        (entity,) = client.find([P4MeterEntry(Meter.ADMISSION, index=WEB.id)])
        return entity.meter_entry.config.cburst, entity.meter_entry.config.pburst


class Standby(StageTest):
    """A second controller with a lower election id may read but not write; its end changes nothing."""

    def runTest(self) -> None:
        backup = self.switch.session(0 if self.switch.client.election_id == 1 else 1)
        try:
            self.assertFalse(backup.is_primary)
            self.assertEqual(self.switch.state(backup), self.switch.baseline)
            with self.assertRaises(NotPrimary):
                backup.write([(~entries.ratios(WEB, {S2: 1})).encode_update(self.switch.schema)])
        finally:
            backup.close()
        self.assertEqual(self.switch.state(), self.switch.baseline)
        self.forwards(CLIENT, *between(CLIENT_HOST, UPLINK_HOST))


class WithoutController(StageTest):
    """Without any session the switch keeps working, because pins, weights and routes are in the switch."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.weigh(WEB, {S2: 1})
        client = self.switch.client
        client.close()
        try:
            self.inject(CLIENT, flow.data())
            self.inject(CLIENT, Flow(WEB, S2, client_port=40001).syn())
            port = self.switch.number(S1.host.port)
            for expected in (
                flow.at_server(flow.data()),
                Flow(WEB, S2, client_port=40001).at_server(Flow(WEB, S2, client_port=40001).syn()),
            ):
                polled = self.dataplane.poll(device_number=0, port_number=port, timeout=AWAIT_S)
                self.assertEqual(bytes(polled.packet or b""), self.padded(bytes(expected)))
        finally:
            self.switch.reconnect(client.election_id + 1)
        self.settle(CLIENT, sent=2)
