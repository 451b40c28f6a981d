"""The demo (`python -m topo.demo`): it compares an equal split, balancing by R and kernel DNAT with three Apache
servers, one of them loaded."""
