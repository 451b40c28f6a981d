"""The live page: another reader of the control socket, in a process of its own.

Pure are `rates`, `view`, `history` and `charts`. `hub` reads the controller, `elements` shows it, `serve` runs.
"""
