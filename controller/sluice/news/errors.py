"""What flash-crowd control raises: parameters or observations that make no sense."""


class OptionsError(ValueError):
    """Options that contradict each other; the text names them and the remedy."""


class ObservationError(ValueError):
    """An observation that cannot be one; the text names what is wrong with it."""
