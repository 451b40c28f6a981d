"""Tests of stage `closing`: the switch closes idle connections, and no others, in the name of client and server."""

from __future__ import annotations

from typing import Any

from harness import entries, plan
from harness.base import AWAIT_S
from harness.closing import GET, PAGE, PASSES, STAMPS, WRAP, Closing, Talk
from harness.collisions import crowd
from harness.flow import Flow
from harness.frames import IP, UDP, Ether, changed, layers, octets
from harness.plan import S1, S2, WEB
from sluice.addresses import from_text
from sluice.frames import tickle
from sluice.names import (
    CONNECTION_SLOTS,
    INTO_PIPELINE,
    PROBE_TIME,
    Counter,
    DropReason,
    PinState,
    Register,
)


class Closes(Closing):
    """The switch closes an idle connection by an RST to the server and a FIN to the client, with valid numbers.

    The FIN has the timestamps of the server's answer to the tickle. The server has one open connection less.
    """

    def runTest(self) -> None:
        talk = self.idle()
        self.assertLoad(1)
        self.tickles(talk)
        self.assertLoad(1)
        self.closes(talk)
        self.assertPinned(talk.flow, PinState.CLOSED)
        self.assertLoad(0)
        self.assertCounts(taken=1)


class TheControllersOwn(Closing):
    """The switch accepts the tickle (a probe of the server) that the controller's own code builds."""

    def runTest(self) -> None:
        talk = self.idle()
        key = talk.flow.key
        ends = (from_text(key.client), key.client_port, from_text(key.service), key.service_port)
        self.hands_in(tickle(*ends))
        port = self.switch.number(talk.flow.server.host.port)
        polled = self.dataplane.poll(device_number=0, port_number=port, timeout=AWAIT_S)
        expected = changed(talk.tickle(), IP_id=0, IP_flags="DF", TCP_window=0xFFFF)
        self.assertEqual(bytes(polled.packet)[:54], octets(talk.flow.at_server(expected)))
        self.assertEqual(self.settle(plan.CLIENT).changes, PASSES)
        self.closes(talk)


class Fins(Closing):
    """A FIN of client or server between tickle and answer ends the connection; the switch does not close it."""

    def runTest(self) -> None:
        for port, by_client in ((40001, True), (40002, False)):
            with self.subTest(by_client=by_client):
                talk = self.idle(port)
                self.tickles(talk)
                if by_client:
                    self.client_sends(talk.flow, talk.request(flags="FA"))
                else:
                    self.server_sends(talk.flow, talk.reply(flags="FA"))
                self.passes_answer(talk)
                self.refuses(talk)
        self.assertCounts(back=2)


class Keepalives(Closing):
    """Keepalives are no activity; a server's keepalive during an attempt to close does not close the connection."""

    def runTest(self) -> None:
        for port, payload in ((40001, b""), (40002, b"\0")):
            with self.subTest(bytes=len(payload)):
                talk = self.idle(port)
                self.client_sends(talk.flow, talk.request(payload, seq=talk.client - 1))
                self.server_sends(talk.flow, talk.reply(payload, seq=talk.server - 1))
                self.tickles(talk)
                self.server_sends(talk.flow, talk.reply(payload, seq=talk.server - 1))
                self.client_sends(talk.flow, talk.request(payload, seq=talk.client - 1))
                self.assertPinned(talk.flow, PinState.ESTABLISHED)
                self.closes(talk)
        self.assertCounts(taken=2)


class OtherNumbers(Closing):
    """While the controller tries to close a connection, an ACK whose sequence or acknowledgment number is wrong closes
    nothing; the right ACK still closes."""

    def runTest(self) -> None:
        talk = self.idle()
        self.tickles(talk)
        self.server_sends(talk.flow, talk.reply(seq=talk.server - 1))
        self.server_sends(talk.flow, talk.reply(ack=talk.client - 1))
        self.closes(talk)


class LapsedAndUsed(Closing):
    """Payload that arrives after a tickle has expired is not counted as the cancellation of an attempt to close."""

    def runTest(self) -> None:
        talk = self.idle()
        self.tickles(talk)
        self.pass_ticks(PROBE_TIME + 1)
        self.asks(talk)
        self.assertCounts()


class NotIdle(Closing):
    """A tickle is dropped if its connection waits for an answer, is idle too briefly, has ended, or is unknown."""

    def runTest(self) -> None:
        talk = self.opened()
        self.refuses(talk)
        self.asks(talk)
        self.refuses(talk)
        self.serves(talk)
        self.refuses(talk)
        self.client_sends(talk.flow, talk.request(ack=talk.server - 1))
        self.refuses(talk)
        self.client_sends(talk.flow, talk.request())
        self.refuses(talk, least_age=1000, reason=DropReason.NOT_IDLE)
        self.tickles(talk)
        self.client_sends(talk.flow, talk.request(flags="FA"))
        self.refuses(talk)
        self.hands(Talk(Flow(WEB, S1, client_port=40077)))
        outcome = self.settle(plan.CLIENT)
        self.assertEqual(outcome.frames, [])
        self.assertEqual(outcome.changes[Counter.VERDICTS, DropReason.NOT_IDLE], 1)


class SentAgain(Closing):
    """After a retransmitted response, the connection is idle only when the client acknowledges the response again."""

    def runTest(self) -> None:
        talk = self.idle()
        again = talk.reply(PAGE, "PA", seq=talk.server - len(PAGE))
        self.server_sends(talk.flow, again)
        self.refuses(talk)
        self.client_sends(talk.flow, talk.request())
        self.ends(talk)


class Forged(Closing):
    """A client's own packet with the numbers of a tickle is no tickle: the server's answer reaches the client."""

    def runTest(self) -> None:
        talk = self.idle()
        self.client_sends(talk.flow, talk.tickle())
        self.passes_answer(talk)
        head = INTO_PIPELINE.to_bytes(2, "big") + bytes(4)
        self.drops(plan.CLIENT, head + octets(talk.tickle()), DropReason.NOT_FOR_US)
        self.passes_answer(talk)
        self.assertPinned(talk.flow, PinState.ESTABLISHED)
        self.assertCounts()


class BlindNumbers(Closing):
    """Forged payload with wrong numbers changes no stored sequence number, so the connection can still be closed."""

    def runTest(self) -> None:
        talk = self.idle()
        self.client_sends(talk.flow, talk.request(b"forged", "PA", seq=talk.client + 70000, ack=talk.server + 9))
        self.passes_answer(talk)
        self.refuses(talk)
        self.idles(talk)
        self.ends(talk)


class Wraps(Closing):
    """A connection is closed with valid numbers also if those of client and server have wrapped within a payload."""

    def runTest(self) -> None:
        talk = self.closed(client=WRAP - 5, server=WRAP - 7)
        self.assertLess(max(talk.client, talk.server), 100)
        self.assertCounts(taken=1)


class Reordered(Closing):
    """If segments of a response arrive out of order, the connection is idle after the ACK of the response's end."""

    def runTest(self) -> None:
        talk = self.opened()
        self.asks(talk)
        first, second = talk.reply(b"one", "A"), talk.reply(b"two", "PA", seq=talk.server + 3)
        self.server_sends(talk.flow, second)
        self.server_sends(talk.flow, first)
        self.client_sends(talk.flow, talk.request(ack=talk.server + 3))
        talk.server += 6
        self.refuses(talk)
        self.client_sends(talk.flow, talk.request())
        self.ends(talk)


class OtherServer(Closing):
    """Another server's packet with the same numbers closes nothing."""

    def runTest(self) -> None:
        self.insert(entries.managed(S2, closed=1))
        talk = self.idle()
        self.tickles(talk)
        other = Talk(talk.flow.to(S2), talk.client, talk.server)
        self.server_sends(other.flow, other.answer())
        self.assertPinned(talk.flow, PinState.ESTABLISHED)
        self.closes(talk)


class PortsUsedAgain(Closing):
    """A SYN after the closing opens a new connection, which is distributed, counted and closed like any other."""

    def runTest(self) -> None:
        talk = self.closed()
        again = self.closed(client=9000, server=9000)
        self.assertEqual(again.flow.key, talk.flow.key)
        self.assertCounts(taken=2)
        self.assertLoad(0)
        self.weigh(WEB, {S2: 1})
        moved = talk.flow.to(S2)
        self.opens(moved)
        self.assertPinned(moved, PinState.PENDING)


class WhileOff(Closing):
    """State of a closed connection does not apply to a connection that reuses its ports while closing is disabled."""

    def manage(self) -> None:
        """Enable nothing: the test itself enables closing."""

    def runTest(self) -> None:
        managed = entries.managed(S1, closed=1)
        self.switch.insert([managed])
        self.closed()
        self.switch.delete([managed])
        talk = self.idle(client=7000, server=8000)
        self.refuses(talk)
        self.insert(managed)
        self.refuses(talk)
        self.idles(talk)
        self.ends(talk)


class MayNotBeClosed(Closing):
    """If a server is measured, but its connections may not be closed, only tickles for its connections are dropped."""

    def manage(self) -> None:
        """Let the switch measure s1's transfers, without closing connections."""
        self.insert(entries.managed(S1, measured=1))

    def runTest(self) -> None:
        talk = self.idle()
        self.refuses(talk)
        self.passes_answer(talk)
        self.client_sends(talk.flow, talk.request())


class Moves(Closing):
    """A connection that has moved to another server is closed by the sequence numbers of the new server."""

    def runTest(self) -> None:
        self.insert(entries.managed(S2, closed=1))
        talk = self.idle()
        self.drains()
        moved = Talk(talk.flow.to(S2), 20001, 30001)
        self.exchange(plan.CLIENT, moved.flow.request(flags="S", seq=20000))
        self.exchange(S2.host.port, moved.flow.reply(flags="SA", seq=30000, ack=20001))
        self.exchange(plan.CLIENT, moved.request())
        self.assertPinned(moved.flow, PinState.ESTABLISHED)
        self.refuses(moved)
        self.idles(moved)
        self.tickles(moved)
        outcome = self.exchange(S2.host.port, moved.answer())
        self.assertEqual(outcome.changes[Counter.VERDICTS, DropReason.NONE], 2)


class InTheSecondWay(Closing):
    """A connection in way 2 (pinned by its second hash) has its own cells; no connection in way 1 is closed with it."""

    def runTest(self) -> None:
        flows = crowd()
        first = self.idle(flow=flows.first)
        second = self.idle(flow=flows.second)
        hints = self.switch.registers.read(
            (Register.CLOSING_HINT, index % 4096)
            for index in (flows.first.key.slot_1, CONNECTION_SLOTS + flows.second.key.slot_2)
        )
        self.assertEqual(
            [hint >> 31 for hint in hints],
            [flows.first.key.slot_1 << 10 | S1.id, (CONNECTION_SLOTS + flows.second.key.slot_2) << 10 | S1.id],
        )
        self.ends(second)
        self.assertPinned(flows.second, PinState.CLOSED, way=2)
        self.asks(first)


class Expires(Closing):
    """The slot of a closed connection is free after the linger timeout, and another connection can use it."""

    def runTest(self) -> None:
        self.set_timers(linger=1)
        flows = crowd()
        self.closed(flow=flows.first)
        self.pass_ticks(2)
        talk = self.idle(flow=flows.second)
        self.assertPinned(flows.second, PinState.ESTABLISHED, way=1)
        self.assertLoad(1)
        self.ends(talk)


class MalformedTickles(Closing):
    """Frames that the controller sends into the pipeline are checked like those of a client."""

    def runTest(self) -> None:
        talk = self.idle()
        good: Any = talk.tickle()
        data = octets(good)
        datagram = layers(
            Ether(dst=plan.CLIENT.mac, src=talk.flow.client_mac), IP(src="10.0.1.10", dst=WEB.address), UDP()
        )
        for frame, reason in (
            (data[:20], DropReason.TRUNCATED),
            (data[:40], DropReason.TRUNCATED),
            (octets(datagram), DropReason.UNSUPPORTED),
            (octets(changed(good, IP_chksum=1)), DropReason.IPV4_CHECKSUM),
            (octets(changed(good, IP_dst=plan.UPLINK_HOST.address)), DropReason.NOT_IDLE),
        ):
            with self.subTest(reason=reason.name, length=len(frame)):
                self.hands_in(frame)
                self.dropped(self.settle(plan.CLIENT), reason)
        self.switch.client.send(b"", INTO_PIPELINE)
        self.dropped(self.settle(plan.CLIENT), DropReason.CPU_HEADER)


class UnderACap(Closing):
    """The FIN has the capped window that the server's answer would have had, and a valid checksum."""

    def manage(self) -> None:
        """Enable closing for s1, with a cap on the server's windows."""
        self.insert(entries.managed(S1, receive_cap=4096, closed=1))

    def runTest(self) -> None:
        talk = self.opened()
        self.asks(talk)
        port = talk.flow.server.host.port
        self.exchange(port, talk.reply(PAGE, "PA"))
        talk.server += len(PAGE)
        self.client_sends(talk.flow, talk.request())
        self.tickles(talk)
        self.inject(port, talk.answer())
        outcome = self.settle(port, sent=2)
        rst = talk.reset_to(talk.answer(), flow_is_server=True)
        window = 8192 - len(GET)  # what remains of the window that the SYN-ACK offered
        fin = talk.flow.at_client(talk.reply(flags="FA", options=STAMPS, window=window))
        self._sent(outcome, [(self.switch.number(port), rst), (self.switch.number(plan.CLIENT), octets(fin))])


class ClosedWindow(Closing):
    """After an ACK with window 0 the client waits for data: the connection is not idle, however long it is silent."""

    def runTest(self) -> None:
        talk = self.opened()
        self.asks(talk)
        self.serves(talk)
        self.client_sends(talk.flow, talk.request(window=0))
        self.refuses(talk)
        self.client_sends(talk.flow, talk.request())
        self.client_sends(talk.flow, talk.request(window=0))
        self.refuses(talk)
        self.pass_ticks(3)
        self.client_sends(talk.flow, talk.request())
        self.refuses(talk, least_age=3)
        self.ends(talk)


class Crosses(Closing):
    """If a request crosses the end of a response, the connection is idle only after the response to that request."""

    def runTest(self) -> None:
        talk = self.opened()
        self.asks(talk)
        first_end = talk.client
        self.asks(talk)
        second_end, talk.client = talk.client, first_end
        self.serves(talk)
        talk.client = second_end
        self.client_sends(talk.flow, talk.request())
        self.server_sends(talk.flow, talk.reply())
        self.refuses(talk)
        self.serves_acknowledged(talk)
        self.ends(talk)


class AskedWhileOff(Closing):
    """If a request passed while closing was disabled, the server's answer to the tickle does not close the connection.

    The answer acknowledges the request, which the stage has not recorded.
    """

    def manage(self) -> None:
        """Enable nothing: the test itself enables closing."""

    def runTest(self) -> None:
        managed = entries.managed(S1, closed=1)
        self.switch.insert([managed])
        talk = self.idle()
        self.switch.delete([managed])
        self.asks(talk)
        self.insert(managed)
        self.tickles(talk)
        self.passes_answer(talk)
        self.refuses(talk)
