"""Load for the lab: request logs (World Cup 98 or synthesised), their replay, and servers that answer with any size.

`replay`, `server`, `bulk` and `delay` are programs of their own, one process each in the namespace of a host; they
import nothing but the standard library and this package, so that they start fast.
"""
