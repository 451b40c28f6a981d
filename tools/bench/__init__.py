"""`make bench`: what the switch carries on sluice's own program, next to what else could be in its place.

One network: a load host with two links to a forwarder, and nothing else on the machine. The forwarders take turns,
round by round, so that a drift of the machine meets all:

- `copy-forward`: a loop of batched receive and send calls without a pipeline. The ceiling.
- `embedded`: the embedded switch.
- `bmv2`: simple_switch_grpc, where it is on PATH.
- `kernel-dnat`: iptables with `-m statistic` and DNAT, by which Ohta & Andou share connections out.

`cases` says what is measured, `search` how a rate is found, `report` what is written.
"""
