"""Opens connections from given addresses and reads them until they end.

python -m experiments.sabtreceiver --to 10.0.0.100:80 10.101.0.1=2 10.102.0.1=4
"""

from __future__ import annotations

import argparse
import selectors
import socket
import sys
from collections.abc import Sequence

PATIENCE_S = 30.0
READ_BYTES = 1 << 18


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Read whatever comes.")
    parser.add_argument("--to", required=True)
    parser.add_argument("sources", nargs="+", help="ADDRESS=CONNECTIONS")
    options = parser.parse_args(arguments)
    host, _, port = options.to.partition(":")
    with selectors.DefaultSelector() as ready:
        for source in options.sources:
            address, _, number = source.partition("=")
            for _ in range(int(number)):
                one = socket.create_connection((host, int(port)), PATIENCE_S, source_address=(address, 0))
                ready.register(one, selectors.EVENT_READ)
        while ready.get_map():
            for key, _ in ready.select(PATIENCE_S):
                one = key.fileobj
                assert isinstance(one, socket.socket)
                try:
                    done = not one.recv(READ_BYTES)
                except ConnectionResetError:
                    done = True
                if done:
                    ready.unregister(one)
                    one.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
