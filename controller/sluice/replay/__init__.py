"""The controller without a switch: its loops' steps, on registers that a capture or a simulation fills."""
