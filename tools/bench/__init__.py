"""`make bench`: measures the switch's throughput with sluice's program, and that of alternatives.

The network is a load host with two links to a forwarder; nothing else runs on the machine. The forwarders take turns,
round by round, so that a drift of the machine's speed affects all of them:

- `copy-forward`: a loop of batched receive and send calls without a pipeline. The ceiling.
- `embedded`: the embedded switch.
- `bmv2`: simple_switch_grpc, where it is on PATH.
- `kernel-dnat`: iptables with `-m statistic` and DNAT, the way in which Ohta & Andou distribute connections.

`cases` lists what is measured, `search` finds the largest rate without loss, `report` writes the results.
"""
