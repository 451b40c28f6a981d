"""Which processors a lab's parts have: servers one to themselves, as machines of their own do.

A client that spins, a switch that goes before everything and a loaded server's workers decide by who shares whose
processor, which the kernel changes every few seconds, how many pages that server answers: ten a second or eighty.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cores:
    """Numbers of processors, as the kernel has them."""

    servers: frozenset[int]
    others: frozenset[int]


def shared_out(allowed: Collection[int]) -> Cores:
    """The last processor for the servers, the rest for everything else; a single one is everybody's."""
    everyone = frozenset(allowed)
    servers = everyone if len(everyone) == 1 else frozenset({max(everyone)})
    return Cores(servers, everyone - servers or everyone)


@contextmanager
def parted() -> Generator[Cores]:
    """Keep the calling thread, and what it starts, off the servers' processor until the end."""
    allowed = os.sched_getaffinity(0)
    cores = shared_out(allowed)
    os.sched_setaffinity(0, cores.others)
    try:
        yield cores
    finally:
        os.sched_setaffinity(0, allowed)


@contextmanager
def together() -> Generator[Cores]:
    """Leave everything where the kernel puts it."""
    everyone = frozenset(os.sched_getaffinity(0))
    yield Cores(everyone, everyone)
