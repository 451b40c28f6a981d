"""What labs measure by: captures, handshakes, counts of the switch, httperf, long downloads."""
