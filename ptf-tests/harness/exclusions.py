"""What a target cannot do by design: tests that it skips and counts that it does not have, each with the reason.

Tests of a stage that a program is compiled without skip themselves (`StageTest.NEEDS`); they do not stand here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.names import Counter

BY_DESIGN = "by design: "
"""What the reason of a skipped test begins with that stands here."""


@dataclass(frozen=True)
class Exclusion:
    """Tests that a target skips for one reason."""

    reason: str
    tests: tuple[str, ...]
    """As `module.Class`, the way that ptf names them."""


TESTS: Mapping[str, tuple[Exclusion, ...]] = {
    "tofino": (
        Exclusion(
            "the least frame of Ethernet has 60 bytes, which hold all that these cut off",
            (
                "intake.TruncatedIpv4",
                "intake.TruncatedOptions",
                "intake.TruncatedArp",
                "intake.TruncatedBehindTag",
                "intake.TruncatedInside",
            ),
        ),
        Exclusion("ingress does not know how long a frame is", ("validate.LengthBeyondFrame",)),
        Exclusion(
            "a bucket that nothing refills is empty from the start, so it has no known number of tokens",
            (
                "admission.YellowIsAdmitted",
                "destinations.YellowIsAdmitted",
                "destinations.ServiceFirst",
                "destinations.SecondPass",
                "returning.StrangersTakeNothing",
                "draining.MeteredOnce",
                "second_look.MeteredOnce",
            ),
        ),
        Exclusion(
            "a register has one fraction: three quarters of a response's window are left after up to seven steps",
            ("rates.Train", "rates.Pauses"),
        ),
        Exclusion(
            "the time after which a response's slot is free is a constant of the program, compared as a signed number",
            ("rates.Collision", "rates.SilentForWeeks"),
        ),
        Exclusion(
            "a key's register is touched before the state is known: a closed connection's ports find its server until"
            " the linger time is over",
            ("slot_reuse.ReuseClosed", "pin_life.OwnSyn", "second_look.PortsUsedAgain"),
        ),
        Exclusion(
            "a key's register is touched before the server is known: what another server sends keeps the slot as well",
            ("pin_life.OtherServers",),
        ),
        Exclusion(
            "a key has no state, and its stamp is of when the slot is over: the life of a pin is another one",
            (
                "pin_life.States",
                "pin_life.Lifetimes",
                "connections.TimeBase",
                "slot_reuse.KeptAlive",
                "slot_reuse.ClaimedInTheClientsName",
                "slot_reuse.NothingShortens",
                "second_look.EndsOnce",
                "second_look.ResetInTheClientsName",
            ),
        ),
        Exclusion(
            "the UDP checksum of a packet inside an ICMP error becomes zero (none)",
            ("icmp_errors.UdpInside", "icmp_errors.UdpChecksumOfZeroInside", "icmp_errors.EveryPairOfAddresses"),
        ),
        Exclusion("a refused SYN with IPv4 options is dropped silently", ("refusal.ResetOddHeaders",)),
        Exclusion(
            "the ledger is in egress, where a packet that waits for its neighbour does not come",
            ("forward.UnresolvedServer", "forward.UnresolvedClient", "neighbours.AnswerWaitsForItsClient"),
        ),
        Exclusion(
            "a refused SYN counts as refused, with a pin to a draining server as well",
            ("destinations.RefusedOfDraining", "draining.Red"),
        ),
        Exclusion("a SYN without a slot goes by capacity, to a draining server as well", ("draining.WithoutSlot",)),
        Exclusion("a selector's hash orders the members of a group its own way", ("balance.DrawIsTheHash",)),
    ),
}
"""By the name of a target's profile."""

COUNTS: Mapping[str, Mapping[Counter, str]] = {
    "tofino": {
        Counter.MOVED: "no stage is left behind the one that knows it",
        Counter.DISOWNED: "no stage is left behind the one that knows it",
    },
}
"""Counters that a target's program does not have, by the name of its profile."""


def reason(target: str, test: str) -> str | None:
    """Why a target skips a test; None where it does not."""
    found = (exclusion.reason for exclusion in TESTS.get(target, ()) if test in exclusion.tests)
    return next(found, None)


def lacks(target: str, counter: str) -> bool:
    """Whether a target does not have what counts there."""
    return counter in COUNTS.get(target, {})
