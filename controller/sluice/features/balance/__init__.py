"""The feature of weights: servers' shares of new connections, and caps on open ones."""
