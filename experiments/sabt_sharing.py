"""The methods of sharing a server's buffer that Matsuo et al. compare, and sluice's options for these methods."""

from __future__ import annotations

from collections.abc import Mapping

PLAIN, EQ, ABT, STEADY = "plain Linux", "EQ", "ABT", "ABT, SABT's needs"
SABT, PAPER = "SABT", "SABT, equation 1"
SHARINGS: Mapping[str, Mapping[str, object]] = {
    EQ: {"sharing": "equal"},
    ABT: {"sharing": "abt", "needs": "present"},
    STEADY: {"sharing": "abt"},
    SABT: {"sharing": "sabt"},
    PAPER: {"sharing": "sabt", "needs": "paper"},
}
"""The options of `send` by sharing method, without the budget; plain Linux has no options."""
