"""Runs the controller without a switch: the steps of its loops, on registers that a capture or a simulation fills."""
