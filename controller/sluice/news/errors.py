"""The errors of flash-crowd control: contradictory parameters, and impossible observations."""


class OptionsError(ValueError):
    """Options that contradict each other. The text names the options and the remedy."""


class ObservationError(ValueError):
    """An observation that is impossible. The text states what is wrong with it."""
