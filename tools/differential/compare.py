"""Compares the outputs, answers and final states of two switches; time stamps may differ by a tolerance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sluice.dataplane.table import STAMP_BITS
from sluice.names import Register
from sluice.switch import closing

from .side import State

SHOWN_BYTES = 160
EXAMPLES = 20

Differ = Callable[[str, int, int], bool]
"""A function that returns whether two values of a register's cell differ. Its first argument is the register's name."""


@dataclass
class Report:
    """Differences by kind, with a few examples of each kind; ``other`` is the name of the compared switch."""

    other: str = "BMv2"
    counts: Counter[str] = field(default_factory=Counter[str])
    examples: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def add(self, kind: str, text: str) -> None:
        """Count a difference, and store its text while there are few examples of its kind."""
        self.counts[kind] += 1
        examples = self.examples.setdefault(kind, [])
        if len(examples) < EXAMPLES:
            examples.append(text)

    def __bool__(self) -> bool:
        return bool(self.counts)


def outputs(
    report: Report, when: str, ours: Mapping[int | str, Sequence[bytes]], theirs: Mapping[int | str, Sequence[bytes]]
) -> None:
    """Compare the outputs of a round, in order, separately for each port.

    A frame that only one switch has sent is one difference; the comparison then continues with the next frame.
    """
    for place in sorted(ours.keys() | theirs.keys(), key=str):
        left, right = list(ours.get(place, ())), list(theirs.get(place, ()))
        if left == right:
            continue
        only_left, only_right = Counter(left) - Counter(right), Counter(right) - Counter(left)
        for frame, count in only_left.items():
            for _ in range(count):
                report.add("only the embedded switch sent", f"{when}, port {place}: {_hex(frame)}")
        for frame, count in only_right.items():
            for _ in range(count):
                report.add(f"only {report.other} sent", f"{when}, port {place}: {_hex(frame)}")
        if not only_left and not only_right:
            at = next(index for index, pair in enumerate(zip(left, right, strict=True)) if pair[0] != pair[1])
            report.add("another order", f"{when}, port {place}, from frame {at}: {_hex(left[at])}, {_hex(right[at])}")


def _hex(frame: bytes) -> str:
    text = frame[:SHOWN_BYTES].hex()
    return f"{text}.. ({len(frame)} bytes)" if len(frame) > SHOWN_BYTES else text


def codes(report: Report, when: str, ours: tuple[int, ...], theirs: tuple[int, ...]) -> None:
    """Compare the answers to a write: their codes, not their texts."""
    if ours != theirs:
        report.add(
            "a write was answered otherwise", f"{when}: embedded {ours or 'OK'}, {report.other} {theirs or 'OK'}"
        )


def states(report: Report, ours: State, theirs: State, differ: Differ) -> None:
    """Compare the final states of the switches: registers, counters and table entries."""
    for name, cells in ours.registers.items():
        other = theirs.registers.get(name, [])
        if len(cells) != len(other):
            report.add("register", f"{name}: {len(cells)} cells, {len(other)} on {report.other}")
        for index, (left, right) in enumerate(zip(cells, other, strict=False)):
            if left != right and differ(name, left, right):
                report.add("register", f"{name}[{index}]: {left:#x}, {right:#x} on {report.other}")
    for name, counts in ours.counters.items():
        other_counts = theirs.counters.get(name, {})
        for index in sorted(counts.keys() | other_counts.keys()):
            left_count, right_count = counts.get(index, (0, 0)), other_counts.get(index, (0, 0))
            if left_count != right_count:
                report.add(
                    "counter", f"{name}[{index}]: {left_count}, {right_count} on {report.other} (packets, bytes)"
                )
    for name, entries in ours.entries.items():
        for entry in entries ^ theirs.entries.get(name, frozenset()):
            whose = "embedded" if entry in entries else report.other
            report.add("table entry", f"{name}, only {whose}: {' '.join(entry.split())}")


STAMP_TOLERANCE = 100_000
"""The largest tolerated difference between time stamps of the two switches: 102 s for stamps in units of 1.024 ms,
almost two hours for stamps in units of 65.536 ms. The switches' clocks start with the switches, which do not start
simultaneously. Timeouts are days, so that the difference lets no entry expire on one switch only."""
_STAMPED = (
    Register.PIN_KEY_1,
    Register.PIN_KEY_2,
    Register.CANDIDATE_KEY,
    Register.ADMITTED_CLIENTS,
    Register.REMEMBERED_CLIENTS,
    Register.RATE_FLOW,
)
"""Registers whose cells contain a time stamp in the low bits."""
TIMES: dict[str, tuple[tuple[int, int], ...]] = {
    register.rpartition(".")[2]: fields
    for register, fields in (dict.fromkeys(_STAMPED, ((0, STAMP_BITS),)) | closing.TIMES).items()
}
"""Bit fields that contain times (lowest bit, number of bits), by the last component of the register's name."""


def sluice_registers(name: str, left: int, right: int) -> bool:
    """Return whether two cells of one of sluice's registers differ; times in them may differ by STAMP_TOLERANCE."""
    for low, bits in TIMES.get(name.rpartition(".")[2], ()):
        mask = (1 << bits) - 1
        distance = (left >> low) - (right >> low)
        if min(distance & mask, -distance & mask) > STAMP_TOLERANCE:
            return True
        left, right = left & ~(mask << low), right & ~(mask << low)
    return left != right
