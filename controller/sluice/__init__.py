"""sluice: a controller that distributes TCP connections over servers by how the servers answer."""

__version__ = "0.1.0"
