"""Connections that the switch may close: the segments of client, server and controller, and all their effects."""

from __future__ import annotations

from typing import Any, cast

from finsy import P4CloneSessionEntry
from finsy.p4schema import P4UpdateType
from finsy.proto import p4r
from sluice.dataplane.table import LOADS
from sluice.names import (
    CLOSE_SESSION,
    CPU_PORT,
    INTO_PIPELINE,
    PAUSE_LENGTH_BITS,
    Counter,
    DropReason,
    Register,
    Table,
)

from . import entries, plan
from .base import AWAIT_S, Outcome, StageTest, completed, first_answer, new
from .flow import ANSWER, FIRST, Flow
from .frames import IP, TCP, Ether, Packet, layers, octets
from .plan import S1, WEB

WRAP = 1 << 32
GET = b"GET / HTTP/1.1\r\n\r\n"
PAGE = b"HTTP/1.1 200 OK\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
STAMPS: list[tuple[str, Any]] = [("NOP", None), ("NOP", None), ("Timestamp", (11, 22))]
PASSES = {(Counter.VERDICTS, DropReason.NONE): 1}
COUNTS = (Register.CLOSING_TAKEN, Register.CLOSING_TAKEN_BACK, Register.CLOSING_RACED)


class Talk:
    """A connection, and the next sequence number of its client and of its server."""

    def __init__(self, flow: Flow, client: int = FIRST, server: int = ANSWER) -> None:
        self.flow = flow
        self.client = client
        self.server = server

    def request(self, payload: bytes = b"", flags: str = "A", **fields: Any) -> Packet:
        """Return a segment of the client, with the client's next sequence number."""
        numbers: dict[str, Any] = {"seq": self.client, "ack": self.server, **fields}
        return self.flow.request(payload, flags=flags, **numbers)

    def reply(self, payload: bytes = b"", flags: str = "A", **fields: Any) -> Packet:
        """Return a segment of the server, with the server's next sequence number."""
        numbers: dict[str, Any] = {"seq": self.server, "ack": self.client, **fields}
        return self.flow.reply(payload, flags=flags, **numbers)

    def answer(self) -> Packet:
        """Return the server's answer to a tickle: an ACK with the server's own numbers and with timestamps."""
        return self.reply(options=STAMPS)

    def tickle(self) -> Packet:
        """Return a tickle (a probe of the server): an ACK in the client's name with impossible sequence numbers."""
        return self.flow.request(flags="A", seq=0, ack=0)

    def again_to(self, sender: Packet, stamps: tuple[int, int] | None = None, *, fin: bool = True) -> bytes:
        """Return the repeated FIN (`fin`) or ACK of the server that the switch sends back to the client.

        The segment has the timestamps `stamps` (None: no timestamps). `sender` is the client's frame; the bytes
        after its headers follow as a trailer.
        """
        options: list[tuple[str, Any]] = [] if stamps is None else [*STAMPS[:2], ("Timestamp", stamps)]
        fields = {"flags": "FA" if fin else "A", "ack": self.client, "window": 0xFFFF, "options": options}
        return self._back_to(sender, plan.CLIENT.mac, **fields)

    def reset_to(self, sender: Packet, flow_is_server: bool, length: int = 0) -> bytes:
        """Return the RST that the switch sends back to the sender of the frame `sender`.

        `flow_is_server`: the frame came from the server. `length`: sequence numbers that the frame takes. The bytes
        after the TCP header of that frame follow as a trailer.
        """
        mac = plan.S1_HOST.port.mac if flow_is_server else plan.CLIENT.mac
        return self._back_to(sender, mac, flags="RA", ack=(cast(Any, sender)[TCP].seq + length) % WRAP, window=0)

    @staticmethod
    def _back_to(sender: Packet, source_mac: str, **fields: Any) -> bytes:
        received: Any = sender
        tcp = received[TCP]
        frame = layers(
            Ether(dst=received[Ether].src, src=source_mac),
            IP(src=received[IP].dst, dst=received[IP].src, ttl=64),
            TCP(sport=tcp.dport, dport=tcp.sport, seq=tcp.ack, **fields),
        )
        return octets(frame) + octets(sender)[len(frame) :]


class Closing(StageTest):
    """Base class: the switch may close idle connections of s1."""

    NEEDS = (Table.RESOURCES,)

    def setUp(self) -> None:
        super().setUp()
        session = P4CloneSessionEntry(CLOSE_SESSION, replicas=[(CPU_PORT, 1)])
        self._session(P4UpdateType.INSERT, session)
        self.addCleanup(self._session, P4UpdateType.DELETE, session)
        self.manage()
        self.switch.registers.clear(*LOADS, *COUNTS, Register.CLOSING_HINT, Register.CLOSING_PAUSES)

    def manage(self) -> None:
        """Let the switch close idle connections of s1, until the end of the test."""
        self.insert(entries.managed(S1, closed=1))

    def _session(self, kind: P4UpdateType, session: P4CloneSessionEntry) -> None:
        self.switch.client.write([p4r.Update(type=kind.vt(), entity=session.encode(self.switch.schema))])

    # -- The life of a connection

    def opened(self, port: int = 40001, client: int = FIRST, server: int = ANSWER, flow: Flow | None = None) -> Talk:
        """Perform a complete handshake; return the connection."""
        talk = Talk(flow or Flow(WEB, S1, client_port=port), (client + 1) % WRAP, (server + 1) % WRAP)
        self.client_sends(talk.flow, talk.flow.request(flags="S", seq=client), new(WEB, S1))
        self.server_sends(
            talk.flow, talk.flow.reply(flags="SA", seq=server, ack=talk.client), first_answer(talk.flow.server)
        )
        self.client_sends(talk.flow, talk.request(), completed(S1))
        return talk

    def asks(self, talk: Talk, payload: bytes = GET) -> None:
        """Send a request of the client."""
        self.client_sends(talk.flow, talk.request(payload, "PA"))
        talk.client = (talk.client + len(payload)) % WRAP

    def serves(self, talk: Talk, payload: bytes = PAGE) -> None:
        """Send a response of the server."""
        self.server_sends(talk.flow, talk.reply(payload, "PA"))
        talk.server = (talk.server + len(payload)) % WRAP

    def serves_acknowledged(self, talk: Talk, payload: bytes = PAGE) -> None:
        """Send a response of the server, and the client's acknowledgement of the response."""
        self.serves(talk, payload)
        self.client_sends(talk.flow, talk.request())

    def idles(self, talk: Talk) -> None:
        """Send a request and its response, and acknowledge the response, after which the connection is idle."""
        self.asks(talk)
        self.serves(talk)
        self.client_sends(talk.flow, talk.request())

    def idle(self, port: int = 40001, **how: Any) -> Talk:
        """Return an idle connection: the server sent the last payload, and the client acknowledged it."""
        talk = self.opened(port, **how)
        self.idles(talk)
        return talk

    def hands(self, talk: Talk, least_age: int = 0) -> None:
        """Let the controller send a tickle; `least_age` is the required idle time in ticks."""
        self.hands_in(octets(talk.tickle()), least_age)

    def hands_in(self, frame: bytes, least_age: int = 0) -> None:
        """Let the controller send a frame into the pipeline; `least_age` is the required idle time in ticks."""
        self.switch.client.send(least_age.to_bytes(4, "big") + frame, INTO_PIPELINE)

    def tickles(self, talk: Talk, least_age: int = 0) -> None:
        """Let the controller send a tickle; assert that the server receives it."""
        self.hands(talk, least_age)
        port = talk.flow.server.host.port
        polled = self.dataplane.poll(device_number=0, port_number=self.switch.number(port), timeout=AWAIT_S)
        self.assertEqual(bytes(polled.packet), octets(talk.flow.at_server(talk.tickle())))
        self.assertEqual(self.settle(plan.CLIENT).changes, PASSES)

    def refuses(self, talk: Talk, least_age: int = 0, reason: DropReason = DropReason.NOT_IDLE) -> None:
        """Let the controller send a tickle; assert that the switch drops it for `reason`."""
        self.hands(talk, least_age)
        self.dropped(self.settle(plan.CLIENT), reason)

    def dropped(self, outcome: Outcome, reason: DropReason) -> None:
        """Assert that the frame was dropped for `reason`, and that nothing else changed."""
        self.assertEqual(outcome.frames, [])
        self.assertEqual(self._named(outcome.changes), self._named({(Counter.VERDICTS, reason): 1}))

    def closes(self, talk: Talk) -> None:
        """Send the server's answer to a tickle; assert that the server receives an RST and the client a FIN."""
        port = talk.flow.server.host.port
        self.inject(port, talk.answer())
        outcome = self.settle(port, sent=2)
        fin = talk.flow.at_client(talk.reply(flags="FA", options=STAMPS))
        rst = talk.reset_to(talk.answer(), flow_is_server=True)
        self._sent(outcome, [(self.switch.number(port), rst), (self.switch.number(plan.CLIENT), octets(fin))])
        self._counted(outcome, {(Counter.VERDICTS, DropReason.NONE): 2}, ())

    def ends(self, talk: Talk) -> None:
        """Send a tickle to the server; assert that the server's answer closes the connection."""
        self.tickles(talk)
        self.closes(talk)

    def closed(self, port: int = 40001, **how: Any) -> Talk:
        """Return a connection that was idle and that the switch has closed."""
        talk = self.idle(port, **how)
        self.ends(talk)
        return talk

    def passes_answer(self, talk: Talk) -> None:
        """Send the server's ACK; assert that the client receives it like any other ACK."""
        self.server_sends(talk.flow, talk.answer())

    def assertCounts(self, taken: int = 0, back: int = 0, raced: int = 0) -> None:
        """Assert the numbers of s1's closed connections (`taken`), and of attempts that payload cancelled (`back`).

        `raced` is the number of closed connections on which the client's payload arrived afterwards.
        """
        counts = self.switch.registers.read([(register, S1.id) for register in COUNTS])
        self.assertEqual(counts, [taken, back, raced])

    def ages(self, talk: Talk, ticks: int) -> None:
        """Set back the time of a connection's last payload by `ticks`; its pin must be in way 1 (its first hash)."""
        cell = (Register.CLOSING_STATE, talk.flow.key.slot_1)
        (state,) = self.switch.registers.read([cell])
        self.switch.registers.write(*cell, state - (ticks << 26))

    def assertPauses(self, **expected: int) -> None:
        """Assert the number of pauses in s1's responses by length class: `of_3=1` is one pause of 4 to 7 ticks."""
        cells = [(Register.CLOSING_PAUSES, S1.id << PAUSE_LENGTH_BITS | at) for at in range(1 << PAUSE_LENGTH_BITS)]
        counts = {f"of_{at}": count for at, count in enumerate(self.switch.registers.read(cells)) if count}
        self.assertEqual(counts, expected)

    def assertLoad(self, connections: int) -> None:
        """Assert the number of open connections of s1, in all registers that count it."""
        self.assertEqual(self.switch.registers.read([(load, S1.id) for load in LOADS]), [connections] * len(LOADS))
