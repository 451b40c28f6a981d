"""The controller without a switch: its own loops' steps over registers that a capture, or a simulation, fills."""
