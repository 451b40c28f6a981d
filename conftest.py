"""For all tests: Ctrl-C ends what they start, also where a shell has started them with SIGINT ignored, as `&` does.
Lines that commands print have no width of a terminal, unless a test sets one.
"""

import os
import signal


def pytest_configure() -> None:
    """Processes inherit that SIGINT is ignored, and bash never heeds it again then."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("COLUMNS", None)  # pytest-xdist's workers have one
