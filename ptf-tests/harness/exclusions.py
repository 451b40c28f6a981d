"""Limitations of targets by design: tests that a target skips, and counters that it lacks, each with the reason.

Some stages are optional. If a program was compiled without a stage, that stage's tests skip themselves
(`StageTest.NEEDS`); they are not listed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.names import Counter

BY_DESIGN = "by design: "
"""Beginning of the message of every test that is skipped because of this list."""


@dataclass(frozen=True)
class Exclusion:
    """Tests that a target skips for one reason."""

    reason: str
    tests: tuple[str, ...]
    """Names of the tests as `module.Class`, as in ptf's output."""


TESTS: Mapping[str, tuple[Exclusion, ...]] = {
    "tofino": (
        Exclusion(
            "Ethernet's shortest frame has 60 bytes, so no frame is too short for these headers",
            (
                "intake.TruncatedIpv4",
                "intake.TruncatedOptions",
                "intake.TruncatedArp",
                "intake.TruncatedBehindTag",
                "intake.TruncatedInside",
            ),
        ),
        Exclusion("ingress has no access to a frame's length", ("validate.LengthBeyondFrame",)),
        Exclusion(
            "a bucket without a refill rate is empty from the start, so its number of tokens is not known",
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
            "the hardware has one fraction: a response's window keeps three quarters after one to seven steps",
            ("rates.Train", "rates.Pauses"),
        ),
        Exclusion(
            "the time after which a response's slot is free is a constant of the program, compared as a signed number",
            ("rates.Collision", "rates.SilentForWeeks"),
        ),
        Exclusion(
            "a key's register is accessed before the state is known: packets with a closed connection's ports go to its"
            " server until the linger time is over",
            ("slot_reuse.ReuseClosed", "pin_life.OwnSyn", "second_look.PortsUsedAgain"),
        ),
        Exclusion(
            "a key's register is accessed before the server is known: packets of another server keep the slot as well",
            ("pin_life.OtherServers",),
        ),
        Exclusion(
            "a key has no state, and its stamp is the time at which the slot expires: a pin's life has other rules",
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
            "in a packet inside an ICMP error the UDP checksum becomes zero (no checksum)",
            ("icmp_errors.UdpInside", "icmp_errors.UdpChecksumOfZeroInside", "icmp_errors.EveryPairOfAddresses"),
        ),
        Exclusion("a refused SYN with IPv4 options is dropped silently", ("refusal.ResetOddHeaders",)),
        Exclusion(
            "the ledger is in egress, which a packet that waits for its neighbour does not reach",
            ("forward.UnresolvedServer", "forward.UnresolvedClient", "neighbours.AnswerWaitsForItsClient"),
        ),
        Exclusion(
            "a refused SYN counts as refused, even with a pin to a draining server",
            ("destinations.RefusedOfDraining", "draining.Red"),
        ),
        Exclusion("a SYN without a slot goes by capacity, even to a draining server", ("draining.WithoutSlot",)),
        Exclusion("a selector's hash orders the members of a group in its own way", ("balance.DrawIsTheHash",)),
    ),
}
"""Tests that a target skips, by the name of the target's profile."""

COUNTS: Mapping[str, Mapping[Counter, str]] = {
    "tofino": {
        Counter.MOVED: "no hardware stage is left after the one that could count it",
        Counter.DISOWNED: "no hardware stage is left after the one that could count it",
    },
}
"""Counters that a target's program lacks, each with the reason, by the name of the target's profile."""


def reason(target: str, test: str) -> str | None:
    """Return why a target skips a test; None if the target runs the test."""
    reasons = (exclusion.reason for exclusion in TESTS.get(target, ()) if test in exclusion.tests)
    return next(reasons, None)


def lacks(target: str, counter: str) -> bool:
    """Return whether a target's program lacks a counter."""
    return counter in COUNTS.get(target, {})
