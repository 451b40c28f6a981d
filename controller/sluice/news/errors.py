"""The errors of flash-crowd control: contradictory parameters, impossible observations."""


class OptionsError(ValueError):
    """Options that contradict each other; the text names them and the remedy."""


class ObservationError(ValueError):
    """An observation that is impossible; the text names its fault."""
