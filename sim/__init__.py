"""A discrete-event simulation that runs the controller's algorithms with more servers and clients than the lab can run.
docs/reference/simulation.md describes the models."""
