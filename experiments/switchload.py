"""What a measurement is to be seen with: the switch's own losses and ceiling, the machine's load.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.experiment import Record

CEILING_PER_S = 220_000
"""Packets per second that it carried through veths with frames of 1,400 bytes (`make bench`, docs/switch.md)."""


def load_sentence(records: Sequence[Record]) -> str:
    """Say how much else the machine had to do; "" without records."""
    loads = [one.load for one in records]
    return (
        f"The machine's load average was {min(loads):.0f} to {max(loads):.0f} at the end of the runs." if loads else ""
    )


def switch_sentence(records: Sequence[Record]) -> str:
    """Say what the switch lost in all runs, and how many packets per second passed it at most; "" where there was none.

    Packets are counted from before the load to after it, so the rate is that of a mean second of the load, or above.
    """
    passed = [one for one in records if "switch" in one.result]
    if not passed:
        return ""
    lost = sum(one.result["switch"]["lost_before"] + one.result["switch"]["lost_after"] for one in passed)
    most = max(one.result["switch"]["received"] / one.parameters["seconds"] for one in passed)
    return (
        f"The switch lost {lost} packets of its own in all runs (conservation: interfaces against verdicts), and had "
        f"{most:,.0f} packets/s at most; its ceiling is some {CEILING_PER_S:,} ([switch.md](switch.md))."
    )
