"""The controller's algorithms where no lab reaches: a discrete-event simulation. See docs/reference/simulation.md."""
