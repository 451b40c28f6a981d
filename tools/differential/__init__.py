"""The same packets and the same P4Runtime writes to the embedded switch and to BMv2, and what differs.

With `--selectors`, a program of nothing but action selectors is what runs: random groups, orders and weights.
With `--twin`, in place of BMv2, to a second embedded switch whose program has Tofino's tables (p4src/twin).

`python -m tools.differential [--packets N] [--seed S]`: sluice's own program on both, with files for interfaces:
nothing is lost and the order is that of the files. Rounds of writes and packets follow each other; a round begins when
both switches have nothing left to do. What depends on time is kept out of reach: meters do not refill (rate zero), and
the times of the connection table are days apart.
"""
