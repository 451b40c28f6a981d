"""The demo (`python -m topo.demo`). Three Apache servers, one of them slowed by a CPU load, serve the same requests
behind an equal split, behind balancing by R, and behind kernel DNAT; the connect times are compared."""
