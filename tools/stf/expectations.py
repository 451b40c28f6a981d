"""Compares the output packets with a test's expectations, separately for each port, and in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .statements import Expect


def matches(pattern: str, frame: bytes) -> bool:
    """Return whether a frame begins with the pattern's digits and, if the pattern ends in `$`, has no further bytes."""
    digits, strict = pattern.removesuffix("$"), pattern.endswith("$")
    received = frame.hex()
    if len(received) < len(digits) or (strict and len(received) > len(digits)):
        return False
    return all(expected in ("*", digit) for expected, digit in zip(digits, received, strict=False))


def differences(expected: Iterable[Expect], received: Mapping[int, Sequence[bytes]]) -> list[str]:
    """Return a line for each difference; no line if all packets are as expected.

    Both arguments are grouped by port. A port that appears in only one of them has no packets in the other. A port is
    not checked if its only expectation has no pattern.
    """
    wanted: dict[int, list[Expect]] = {}
    for expect in expected:
        wanted.setdefault(expect.port, []).append(expect)
    lines: list[str] = []
    for port in sorted(wanted.keys() | received.keys()):
        patterns, frames = wanted.get(port, []), received.get(port, [])
        if [expect.pattern for expect in patterns] == [None]:
            continue
        if len(patterns) != len(frames):
            lines.append(f"port {port}: {len(patterns)} packets are expected, {len(frames)} came")
        for expect, frame in zip(patterns, frames, strict=False):
            if expect.pattern is not None and not matches(expect.pattern, frame):
                lines.append(f"port {port}, line {expect.line}: expected {expect.pattern}, got {frame.hex()}")
    return lines
