"""Converts real ratios to integer selector weights by the largest-remainder method."""

from __future__ import annotations

from collections.abc import Collection, Mapping

MINIMUM_SUM = 256
"""The least sum of the weights of a selector group."""
PER_SERVER = 16
"""The least mean weight of the servers of a selector group. In groups of more than 16 servers, it requires a larger sum
than MINIMUM_SUM."""


def weight_sum(servers: int) -> int:
    """Return the sum of the weights of a selector group: the smallest power of two that is at least MINIMUM_SUM, and at
    least PER_SERVER times the number of its servers."""
    needed = max(MINIMUM_SUM, PER_SERVER * servers)
    return 1 << (needed - 1).bit_length()


def largest_remainder(
    ratios: Mapping[int, float], total: int | None = None, *, measured: Collection[int] = ()
) -> dict[int, int]:
    """Return weights that sum to ``total`` exactly. Each differs by less than 1 from its ratio's exact part of
    ``total`` (the largest-remainder method).

    ``total`` is by default the ``weight_sum`` of the number of servers. Equal remainders go to the larger ratio, then
    to the lower server number. Servers in ``measured`` have a weight of at least 1: a missing 1 is taken from the
    largest weight, if that is above 1; it may then differ by more than 1. Servers of weight 0 are omitted. Raises
    ValueError if no ratio is positive or one is negative, so that a group is never empty.
    """
    total = weight_sum(len(ratios)) if total is None else total
    scale = sum(ratios.values())
    if not ratios or scale <= 0:
        raise ValueError("no server has a positive ratio; a group is never empty")
    if min(ratios.values()) < 0:
        raise ValueError(f"a ratio is negative: {dict(ratios)}")
    shares = {server: ratio / scale * total for server, ratio in ratios.items()}
    weights = {server: int(share) for server, share in shares.items()}
    order = sorted(shares, key=lambda server: (weights[server] - shares[server], -shares[server], server))
    for server in order[: total - sum(weights.values())]:
        weights[server] += 1
    for server in sorted(measured):
        if weights.get(server) == 0:
            donor = max(weights, key=lambda candidate: (weights[candidate], -candidate))
            if weights[donor] > 1:
                weights[donor] -= 1
                weights[server] = 1
    return {server: weight for server, weight in sorted(weights.items()) if weight > 0}


def to_ratios(weights: Mapping[int, int]) -> dict[int, float]:
    """Convert the weights of a selector group that was read back from a switch to ratios; empty if all weights are
    0."""
    total = sum(weights.values())
    return {server: weight / total for server, weight in weights.items()} if total else {}
