"""The programs that make a lab's load: `client` and `server`, `delay` (a delay line) and `flood` (SYNs without
clients).

Each program runs in a separate process in the namespace of a host. Only `flood` imports numpy, which loads slowly; the
other programs start fast.
"""
