"""Tests of the caps on TCP windows: properties that hold for all sequences of segments."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sluice.dataplane.windows import LEARN_AFTER, NO_CAP, HandshakeSegment, Segment, Side, agreed, later

WRAP = 1 << 32
scales = st.none() | st.integers(0, 15)
caps = st.sampled_from((0, 1, 10_000, 65_536, 1_000_000, NO_CAP, WRAP - 1)) | st.integers(0, 1 << 20)


@st.composite
def moves(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """Draw the bytes that the server sends, and the segment with which the client answers.

    Three numbers describe the segment: the share of the bytes in flight that it acknowledges (in 256ths; above 256, it
    acknowledges bytes that were never sent), by how many bytes its acknowledgement number is then reduced, and its
    window field.
    """
    return (
        draw(st.integers(0, 100_000)),
        draw(st.sampled_from((0, 64, 255, 256, 256, 256, 300))),
        draw(st.sampled_from((0, 0, 0, 1, 5000))),
        draw(st.sampled_from((0, 1, 500, 0xFFFF)) | st.integers(0, 0xFFFF)),
    )


def handshake(client: int, server: int, scale: int | None, window: int = 0xFFFF) -> tuple[Side, Side]:
    """Return client and server after a handshake; `client` and `server` are their initial sequence numbers.

    `scale` and `window` are the client's window scale (None: no such option) and the window in its SYN.
    """
    syn, syn_ack = HandshakeSegment(client, window, 1460, scale), HandshakeSegment(server, 0xFFFF, 1460, 7)
    return agreed(syn, syn_ack, (client + 1) % WRAP)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, WRAP - 1), scales, st.lists(st.tuples(moves(), caps), max_size=40))
def test_nothing_that_was_offered_is_taken_back_but_by_the_endpoint(
    start: int, scale: int | None, steps: list[tuple[tuple[int, int, int, int], int]]
) -> None:
    """No cap takes back a window that was offered: its edge falls only if the endpoint itself lowers it.

    The offered window exceeds the last cap only if a larger window was offered before that cap.
    """
    client, server = handshake(7, start, scale)
    offered, unit = client.edge, (1 << client.scale) - 1
    for (sent, payload, back, window), cap in steps:
        room = max(0, (client.edge - server.next + WRAP // 2) % WRAP - WRAP // 2)
        length = min(sent, room, 0xFFFF - 40)
        server.sends(client, Segment(server.next, 8, 1, length), 0)
        flight = (server.next - client.acked) % WRAP
        acknowledgement = (client.acked + flight * payload // 256 - back + (payload == 300)) % WRAP
        before = replace(client)
        own = (acknowledgement + (window << client.scale)) % WRAP
        got = client.sends(server, Segment(8, acknowledgement, window), cap)
        assert got <= window
        if later(acknowledgement, server.next):
            assert (got, client) == (window, before)
            continue
        assert (got == 0) == (window == 0)
        edge = (acknowledgement + (got << client.scale)) % WRAP
        assert own == edge or not later(offered, (edge + unit) % WRAP)
        if not later(before.acked, acknowledgement) and got < window:
            assert not later((acknowledgement + client.cap) % WRAP, edge)
        if later(edge, (offered + unit) % WRAP):
            assert not later(edge, (acknowledgement + client.cap + unit) % WRAP)
        if later(edge, offered):
            offered = edge


@settings(deadline=None)
@given(
    st.integers(0, WRAP - 1), st.integers(0, WRAP - 1), st.lists(st.integers(1, 60_000), min_size=1, max_size=30), caps
)
def test_a_duplicate_stays_one_whatever_the_cap_becomes(start: int, shift: int, sizes: list[int], cap: int) -> None:
    """Duplicate acknowledgements carry equal windows under any cap, also when sequence numbers wrap."""
    windows: list[list[int]] = []
    for first in (start, (start + shift) % WRAP):
        client, server = handshake(7, first, 3)
        client.sends(server, Segment(8, client.acked + 1, 0xFFFF), 0)
        seen: list[int] = []
        for size in sizes:
            server.sends(client, Segment(server.next, 8, 1, size), 0)
            ack = Segment(8, server.next, 0xFFFF)
            window, *others = (client.sends(server, ack, each) for each in (cap, 1, 0, NO_CAP))
            assert others == [window] * 3
            seen.append(window)
        windows.append(seen)
    assert windows[0] == windows[1]


def test_a_cap_waits_until_what_was_promised_is_used() -> None:
    """The client offered 65,535 bytes, and the cap is 20,000: received bytes shrink the offered window to the cap.

    The expected windows are calculated by hand.
    """
    client, server = handshake(7, 1000, 0)
    client.sends(server, Segment(8, 1001, 0xFFFF), 20_000)
    client.sends(server, Segment(8, 1001, 0xFFFF), 20_000)
    seen: list[int] = []
    for _ in range(4):
        server.sends(client, Segment(server.next, 8, 1, 15_000), 0)
        seen.append(client.sends(server, Segment(8, server.next, 0xFFFF), 20_000))
    assert seen == [50_535, 35_535, 20_535, 20_000]


def test_a_cap_is_at_least_four_segments() -> None:
    assert handshake(7, 1000, 7)[0].least == 4 * 1460
    assert agreed(HandshakeSegment(0, 1), HandshakeSegment(0, 1), 1)[0].least == 4 * 536


@pytest.mark.parametrize(("scale", "units"), [(0, 14_480), (7, 114), (10, 15), (14, 1)])
def test_a_window_is_no_smaller_than_its_cap(scale: int, units: int) -> None:
    """Under a cap of ten segments (14,480 bytes) the offered window is at least that large.

    The window field counts multiples of 2^scale bytes, so the window is rounded up.
    """
    client, server = handshake(7, 1000, scale)
    window = 0
    for _ in range(20):  # use up the window that the handshake offered
        server.sends(client, Segment(server.next, 8, 1, 4000), 0)
        window = client.sends(server, Segment(8, server.next, 60_000), 14_480)
    assert window == units


def test_a_scale_that_one_side_does_not_give_is_none() -> None:
    for send_cap, receive_cap in ((7, None), (None, 7)):
        client, server = agreed(HandshakeSegment(0, 1, 1460, send_cap), HandshakeSegment(0, 1, 1460, receive_cap), 1)
        assert (client.scale, server.scale) == (0, 0)


def test_a_window_that_opens_again_is_capped_at_once_and_does_not_wait() -> None:
    """After a zero window no data is in flight, so the cap applies to the next offered window at once."""
    client, server = handshake(7, 1000, 0, window=1)
    server.sends(client, Segment(1001, 8, 1, 1), 0)
    assert client.sends(server, Segment(8, 1002, 0), 20_000) == 0
    assert client.sends(server, Segment(8, 1002, 0xFFFF), 20_000) == 20_000


def test_an_acknowledgement_of_what_was_never_sent_moves_nothing() -> None:
    client, server = handshake(7, 1000, 7)
    before = replace(client)
    for far in (1, 1 << 20, 1 << 30, (1 << 31) - 1, 1 << 31):
        assert client.sends(server, Segment(8, (server.next + far) % WRAP, 9), 1) == 9
        assert client == before


def test_data_far_beyond_what_was_offered_moves_nothing() -> None:
    """Data far beyond the offered window does not move the expected sequence number.

    Otherwise the switch would accept a forged acknowledgement of such data.
    """
    client, server = handshake(7, 1000, 7)
    for far in (1 << 20, 1 << 30, (1 << 31) - 1):
        client.sends(server, Segment((8 + far) % WRAP, 1001, 9, 100), 0)
        assert client.next == 8


@pytest.mark.parametrize("unseen", [300_000, 1 << 30, 3 << 29, 1 << 31, 5 << 29])
@pytest.mark.parametrize("uploads", [False, True])
def test_what_passed_unseen_is_learned_again_and_takes_nothing_back(unseen: int, uploads: bool) -> None:
    """After segments that bypassed the switch, caps apply again within a few windows, and no offered window shrinks.

    Until then the endpoint's own windows are forwarded.
    """
    ends = handshake(7, 1000, 7)
    receiver, sender = ends[::-1] if uploads else ends
    edge = (sender.next + unseen) % WRAP
    windows: list[int] = []
    for _ in range(60):
        sender.sends(receiver, Segment(edge, receiver.next, 500, 1000), 0)
        edge = (edge + 1000) % WRAP
        windows.append(receiver.sends(sender, Segment(receiver.next, edge, 300), 20_000))
    learned = next(number for number, window in enumerate(windows) if window < 300)
    assert LEARN_AFTER <= learned < 2 * LEARN_AFTER
    assert all(a - b <= 8 for a, b in zip(windows[learned:], windows[learned + 1 :], strict=False))
    assert windows[-1] == -(-20_000 // 128)


def test_what_does_not_fit_now_and_then_teaches_nothing() -> None:
    client, server = handshake(7, 1000, 0)
    for _ in range(50):
        before = replace(client), replace(server)
        server.sends(client, Segment((server.next + (1 << 29)) % WRAP, 8, 1, 5), 0)
        for _ in range(30):
            client.sends(server, Segment(8 + (1 << 29), (server.next + (1 << 29)) % WRAP, 9), 0)
        assert (client.next, server.next, client.edge) == (before[0].next, before[1].next, before[0].edge)
        client.sends(server, Segment(8, server.next, 1), 0)
        assert server.misfits == 0
    for number in range(LEARN_AFTER - 1):
        server.sends(client, Segment((server.next + (1 << 29)) % WRAP, 8, 1, 5), 0)
        assert server.misfits == number + 1


@pytest.mark.parametrize("mss", [(65_495, 1460), (1460, 9000)])
def test_the_least_cap_is_four_of_the_smaller_segments(mss: tuple[int, int]) -> None:
    client, server = agreed(HandshakeSegment(0, 1, mss[0]), HandshakeSegment(0, 1, mss[1]), 1)
    assert client.least == server.least == 4 * 1460
