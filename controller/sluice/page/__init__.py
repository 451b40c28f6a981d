"""The live page: a client of the control socket, in a process of its own.

`rates`, `view`, `history` and `charts` are pure. `hub` reads the controller, `elements` builds the page, `serve` is the
process.
"""
