"""The programs of a load: `client` and `server`, `delay` (a delay line) and `flood` (SYNs without clients).

Each runs in a process of its own in the namespace of a host; those without numpy start fast.
"""
