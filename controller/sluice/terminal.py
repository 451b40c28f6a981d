"""Output for people: colours where there is a terminal (NO_COLOR turns them off), plain text elsewhere."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

_STYLES = (
    (r"(?m)^\S.*?(?=  mode )", "bold"),
    (r"\b(?:ejected|absent|does not answer|is gone|lost)\b", "red"),
    (r"\b(?:draining|drains|probe|standby|connecting)\b", "yellow"),
    (r"(?m)\b(?:in|primary|is back)\b(?=  |$)", "green"),
    (r"(?m)^ *(?:server|destination)  .*$", "dim"),
)
"""What is set off in a status: a pattern, and its style."""


def styled(text: str) -> Text:
    """A text with its states in colours."""
    marked = Text(text, no_wrap=True, overflow="ignore")
    for pattern, style in _STYLES:
        marked.highlight_regex(pattern, style)
    return marked


def draws(console: Console) -> bool:
    """Whether its lines can be written over: it is a terminal, and no dumb one (TERM)."""
    return console.is_terminal and not console.is_dumb_terminal


def show(text: str) -> None:
    """Print to standard output, lines as long as they are."""
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(styled(text), soft_wrap=True)
    else:
        print(text)
