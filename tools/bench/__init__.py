"""`make bench`: measures the throughput of the embedded switch with sluice's program, and of alternative forwarders.

The network is a load host with two links to a forwarder; no other load runs on the machine. The forwarders are measured
in turn, round by round, so that a drift of the machine's speed affects all of them equally:

- `copy-forward`: a loop of batched receive and send calls without a pipeline, as an upper bound.
- `embedded`: the embedded switch.
- `bmv2`: simple_switch_grpc, if it is on PATH.
- `kernel-dnat`: iptables with `-m statistic` and DNAT, the method by which Ohta & Andou distribute connections.

`cases` lists the measurements, `search` finds the largest rate without loss, and `report` writes the results.
"""
