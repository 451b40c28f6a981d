"""What lab, packet tests and tools say when they cannot go on."""


class SetupError(Exception):
    """What a run needs cannot be started, or has ended: what, where, and the remedy."""
