"""What the controller shows of itself: status, explanations, metrics, the control socket, and texts for a terminal."""
