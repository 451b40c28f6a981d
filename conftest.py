"""Settings of every test run: Ctrl-C ends the processes that tests start, even if the shell started pytest with `&`,
and therefore with SIGINT ignored. Commands under test do not wrap their lines at a terminal's width, unless a test sets
COLUMNS.
"""

import os
import signal


def pytest_configure() -> None:
    """Restore the handling of SIGINT, because child processes inherit an ignored SIGINT and bash cannot undo this."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("COLUMNS", None)  # pytest-xdist sets COLUMNS in its worker processes
