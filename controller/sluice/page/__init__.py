"""The live page: a client of the control socket, in a separate process.

`rates`, `view`, `history` and `charts` contain pure functions. `hub` reads the controller, `elements` builds the page,
and `serve` runs the process.
"""
