"""Gives the same packets and P4Runtime writes to the embedded switch and to BMv2, and reports differences.

With `--selectors`, both switches run a program that has only action selectors, with random groups, orders and weights.
With `--content`, the tables and frames include a content service. With `--twin`, a second embedded switch, whose
program has Tofino's tables (p4src/twin), replaces BMv2. With `--model`, the embedded switch runs this program, and
Tofino's model replaces BMv2.

`python -m tools.differential [--packets N] [--seed S]` runs sluice's program on both switches, with files as
interfaces: no packet is lost, and the files determine the order. Rounds of writes and packets follow each other; a
round begins when both switches are idle. Results do not depend on time: meters do not refill (their rate is zero), and
the timeouts of the connection table are days.
"""
