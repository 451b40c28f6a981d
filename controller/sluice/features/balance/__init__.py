"""The feature that decides weights: servers' shares of new connections, and caps on open connections."""
