"""The asynchronous tasks of the controller: they observe the switch, decide, and write decisions to it."""
