"""What the switch is made to do: one module per stage of the P4 program, and the session they share."""
