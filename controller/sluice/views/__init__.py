"""The controller's views for users: status, explanations, metrics, the control socket, and texts for a terminal."""
