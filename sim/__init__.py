"""The controller's own algorithms where no lab reaches: a discrete-event simulation. See docs/simulation.md."""
