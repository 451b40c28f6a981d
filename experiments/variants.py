"""The variants of load balancing that Fig. 5 compares: sluice in its modes, and current alternatives, each as a lab."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from experiments.experiment import Say
from experiments.webpool import quiet
from topo.labs.alternatives import AlternativeLab
from topo.labs.web import Lab
from topo.plan.network import Balance, PoolPlan
from topo.testbed.nodes import switch_kind

PERIOD_S = 1.0
WINDOW_S = 10.0
"""R's window in seconds. The window has 10 periods T of 1 s (PERIOD_S); Ohta & Andou use a window of 200 s, which has
20 periods of 10 s."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of load balancing: sluice in one of its modes, or an alternative to sluice."""

    name: str
    title: str
    open: Callable[[Say, PoolPlan], Lab]
    proxy: bool = False
    """Whether the variant completes the client's handshake itself, so that connect times do not depend on the
    server."""


def _sluice(name: str, title: str, mode: str, second_look: bool | None = None) -> Variant:
    def lab(say: Say, pool: PoolPlan) -> Lab:
        balance = Balance(mode, PERIOD_S, WINDOW_S, second_look=second_look)
        return Lab(switch_kind(), balance, say=quiet(say), pool=pool)

    return Variant(name, title, lab)


def _alternative(name: str, title: str, *, proxy: bool) -> Variant:
    return Variant(name, title, lambda say, pool: AlternativeLab(name, say=quiet(say), pool=pool), proxy)


EQUAL = _sluice("equal", "equal split", "fixed")
PAPER = _sluice("paper", "R, paper mode", "paper")
WITHOUT = _sluice("production-first", "R, production mode without the second look", "production", second_look=False)
PRODUCTION = _sluice("production", "R, production mode", "production", second_look=True)
IPTABLES = _alternative("iptables", "kernel DNAT, equal probability", proxy=False)
BEHIND_HOP = _alternative("iptables-hop", "kernel DNAT behind a hop in user space", proxy=False)
ROUND_ROBIN = _alternative("haproxy-roundrobin", "HAProxy, roundrobin", proxy=True)
LEAST = _alternative("haproxy-leastconn", "HAProxy, leastconn", proxy=True)
NGINX = _alternative("nginx-leastconn", "nginx stream, least_conn", proxy=True)

VARIANTS = {
    variant.name: variant for variant in (EQUAL, PAPER, WITHOUT, PRODUCTION, IPTABLES, ROUND_ROBIN, LEAST, NGINX)
}
ALTERNATIVES = (IPTABLES, ROUND_ROBIN, LEAST, NGINX)
