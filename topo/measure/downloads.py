"""Long downloads by slow readers: connections that last across weight changes, and whose content is compared.

Each of several readers fetches the long file repeatedly, at a steady rate and through a small receive window. A
download that is reset, times out, ends early or differs from the original is a broken connection.
"""

from __future__ import annotations

import hashlib
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from topo.testbed.namespaces import socket_in

RECEIVE_BUFFER_BYTES = 32 << 10
CHUNK_BYTES = 8 << 10
TIMEOUT_S = 45.0
"""Seconds without a received byte after which a download counts as broken. The timeout leaves the kernel
time to repeat several times a SYN that an overloaded server has dropped."""


@dataclass(frozen=True, slots=True)
class Download:
    """One finished download; times are in seconds, on the clock of time.time(). If the socket failed, ``established``
    is the time at which the reader began to connect."""

    established: float
    ended: float
    fault: str
    """Description of the download's fault; empty if the content equals the original file."""


def read_response(connection: socket.socket, rate_bytes_per_s: float, hurry: threading.Event) -> tuple[int, str, str]:
    """Read an HTTP response to its end: at the given rate, or at full speed once ``hurry`` is set.

    Return the size of the body in bytes, its SHA-256 in hexadecimal, and the status line. If the connection ends within
    the header, the size is 0 and the SHA-256 empty.
    """
    head = b""
    while b"\r\n\r\n" not in head:
        more = connection.recv(CHUNK_BYTES)
        if not more:
            return 0, "", head.split(b"\r\n")[0].decode(errors="replace")
        head += more
    head, _, body = head.partition(b"\r\n\r\n")
    digest = hashlib.sha256(body)
    size = len(body)
    started = time.monotonic()
    while more := connection.recv(CHUNK_BYTES):
        digest.update(more)
        size += len(more)
        ahead = size / rate_bytes_per_s - (time.monotonic() - started)
        if ahead > 0:
            hurry.wait(ahead)
    return size, digest.hexdigest(), head.split(b"\r\n")[0].decode(errors="replace")


class Downloads:
    """Readers that download the file repeatedly until they are stopped."""

    def __init__(
        self,
        *,
        namespace_pid: int,
        address: str,
        port: int,
        path: str,
        original: bytes,
        readers: int,
        rate_bytes_per_s: float,
        receive_buffer_bytes: int = RECEIVE_BUFFER_BYTES,
    ) -> None:
        self._namespace_pid = namespace_pid
        self._target = (address, port)
        self._path = path
        self._rate = rate_bytes_per_s
        self._buffer_bytes = receive_buffer_bytes
        self._size = len(original)
        self._digest = hashlib.sha256(original).hexdigest()
        self._ending = threading.Event()
        self._aborted = False
        self._lock = threading.Lock()
        self._finished: list[Download] = []
        self._running: dict[int, float] = {}
        self._threads = [threading.Thread(target=self._repeat, args=(n,), name=f"reader {n}") for n in range(readers)]
        for thread in self._threads:
            thread.start()

    def finished(self) -> Sequence[Download]:
        """Return the downloads that have ended so far."""
        with self._lock:
            return tuple(self._finished)

    def established(self) -> Sequence[float]:
        """Return the time at which each running download's connection was established."""
        with self._lock:
            return tuple(self._running.values())

    def finish(self) -> Sequence[Download]:
        """Let the running downloads end at full speed; return all finished downloads."""
        self._ending.set()
        for thread in self._threads:
            thread.join()
        return self.finished()

    def abort(self) -> None:
        """Let the running downloads end at full speed, as `finish` does, but do not add them to the finished ones."""
        self._aborted = True
        self.finish()

    def _repeat(self, reader: int) -> None:
        while not self._ending.is_set():
            started = time.time()
            try:
                established, size, digest, status = self._download(reader)
            except OSError as error:
                established, size, digest, status = started, 0, "", f"{type(error).__name__}: {error}"
            ended = time.time()
            fault = "" if digest == self._digest else f"{size} of {self._size} bytes, {status}"
            with self._lock:
                self._running.pop(reader, None)
                if not self._aborted:
                    self._finished.append(Download(established, ended, fault))

    def _download(self, reader: int) -> tuple[float, int, str, str]:
        with socket_in(self._namespace_pid, socket.AF_INET, socket.SOCK_STREAM) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._buffer_bytes)
            connection.settimeout(TIMEOUT_S)
            connection.connect(self._target)
            established = time.time()
            with self._lock:
                self._running[reader] = established
            connection.sendall(f"GET /{self._path} HTTP/1.0\r\nHost: {self._target[0]}\r\n\r\n".encode())
            size, digest, status = read_response(connection, self._rate, self._ending)
            return established, size, digest, status


def spanning(downloads: Sequence[Download], moment: float) -> int:
    """Count the downloads that were established before `moment` and ended after it."""
    return sum(download.established <= moment <= download.ended for download in downloads)
