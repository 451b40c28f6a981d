"""Access to TCP ports in another network namespace."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Thread

from topo.testbed.namespaces import socket_in


@contextmanager
def reached(pid: int, port: int) -> Generator[str]:
    """Yield a local address whose connections are forwarded to a port on the loopback interface of process `pid`'s
    namespace."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket_in(pid, socket.AF_INET, socket.SOCK_STREAM)
                far.connect(("127.0.0.1", port))
                for ends in ((near, far), (far, near)):
                    Thread(target=_pump, args=ends, daemon=True).start()

    Thread(target=accept, daemon=True).start()
    host, here = listener.getsockname()
    yield f"{host}:{here}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
