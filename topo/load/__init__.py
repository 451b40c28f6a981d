"""The programs that make a lab's load: `client` and `server`, `delay` (a delay line) and `flood` (SYNs without
clients).

Each program runs in a separate process in the namespace of a host. Programs without numpy start fast.
"""
