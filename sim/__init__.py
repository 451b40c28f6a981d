"""A discrete-event simulation that runs the controller's algorithms at sizes that no lab reaches. See
docs/reference/simulation.md."""
