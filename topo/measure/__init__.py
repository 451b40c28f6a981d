"""Measurements of the labs: captures, handshakes, the switch's counters, httperf, long downloads."""
