"""Real ratios to integer selector weights, by largest remainder."""

from __future__ import annotations

from collections.abc import Collection, Mapping

MINIMUM_SUM = 256
PER_SERVER = 16


def weight_sum(servers: int) -> int:
    """The fixed sum of the weights of a group: a power of two, at least 256 and at least 16 a server."""
    needed = max(MINIMUM_SUM, PER_SERVER * servers)
    return 1 << (needed - 1).bit_length()


def largest_remainder(
    ratios: Mapping[int, float], total: int | None = None, *, measured: Collection[int] = ()
) -> dict[int, int]:
    """Weights that sum to ``total`` (``weight_sum`` of a group of these) exactly, each within one of its ratio's share.

    Equal remainders go to the larger ratio, then to the lower id. Servers in ``measured`` keep at least a weight
    of 1, taken from the largest. A weight of 0 is left out of the result. Raises ValueError when there is
    no positive ratio, so that a group is never empty.
    """
    whole = weight_sum(len(ratios)) if total is None else total
    scale = sum(ratios.values())
    if not ratios or scale <= 0:
        raise ValueError("no server has a positive ratio; a group is never empty")
    if min(ratios.values()) < 0:
        raise ValueError(f"a ratio is negative: {dict(ratios)}")
    shares = {server: ratio / scale * whole for server, ratio in ratios.items()}
    weights = {server: int(share) for server, share in shares.items()}
    order = sorted(shares, key=lambda server: (weights[server] - shares[server], -shares[server], server))
    for server in order[: whole - sum(weights.values())]:
        weights[server] += 1
    for server in sorted(measured):
        if weights.get(server) == 0:
            donor = max(weights, key=lambda candidate: (weights[candidate], -candidate))
            if weights[donor] > 1:
                weights[donor] -= 1
                weights[server] = 1
    return {server: weight for server, weight in sorted(weights.items()) if weight > 0}


def to_ratios(weights: Mapping[int, int]) -> dict[int, float]:
    """The ratios that a group read back from a switch stands for."""
    whole = sum(weights.values())
    return {server: weight / whole for server, weight in weights.items()} if whole else {}
