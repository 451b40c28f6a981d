"""What the lab says when it cannot go on."""

from __future__ import annotations


class LabError(Exception):
    """A failure with a message for the person at the terminal: what, where, and the remedy."""
