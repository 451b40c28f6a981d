"""A raw socket that receives or sends many frames with each system call (recvmmsg(2), sendmmsg(2))."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import socket
import struct
import time

import numpy as np
from numpy.typing import NDArray

ETH_P_IP = 0x0800
SO_RCVBUFFORCE, SO_SNDBUFFORCE = 33, 32
SOL_PACKET, PACKET_STATISTICS = 263, 6
"""Socket level and option of <linux/if_packet.h>, from which the number of dropped frames is read."""
BUFFER = 1 << 26
"""Size of the socket's buffers in bytes. The buffers store frames while the process is busy."""
MSG_DONTWAIT = 0x40
ROOM = 128
"""Number of bytes that are stored of each frame; the rest of a longer frame is discarded."""
AT_ONCE = 1024
PAUSE_S = 0.0005
"""Seconds until the next attempt to send if the interface's queue is full."""

_HEADER = np.dtype(
    {
        "names": ["vector", "vectors", "length"],
        "formats": ["u8", "u8", "u4"],
        "offsets": [16, 24, 56],
        "itemsize": 64,
    }
)
"""Fields of struct mmsghdr on a 64-bit machine: msg_hdr.msg_iov, msg_hdr.msg_iovlen, msg_len."""
_VECTOR = np.dtype([("base", "u8"), ("length", "u8")])
"""Fields of struct iovec."""
_libc = ctypes.CDLL(None, use_errno=True)


class _Buffers:
    """Memory for AT_ONCE frames, and the structures that pass its addresses to the kernel."""

    def __init__(self) -> None:
        self.frames = np.zeros((AT_ONCE, ROOM), np.uint8)
        self.vectors = np.zeros(AT_ONCE, _VECTOR)
        self.headers = np.zeros(AT_ONCE, _HEADER)
        self.vectors["base"] = self.frames.ctypes.data + ROOM * np.arange(AT_ONCE)
        self.vectors["length"] = ROOM
        self.headers["vector"] = self.vectors.ctypes.data + _VECTOR.itemsize * np.arange(AT_ONCE)
        self.headers["vectors"] = 1

    def at(self, number: int) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.headers.ctypes.data + _HEADER.itemsize * number)


class Wire:
    """A socket that receives and sends the IPv4 frames of an interface."""

    def __init__(self, made: socket.socket, interface: str) -> None:
        """``made``: a socket of family AF_PACKET, created in the interface's namespace."""
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
        made.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER)
        made.bind((interface, ETH_P_IP))
        self.socket = made
        self._in, self._out = _Buffers(), _Buffers()
        self._lost = 0

    def lost(self) -> int:
        """Return the number of received frames that the kernel has dropped so far because the socket's buffer was
        full."""
        self._lost += struct.unpack("II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
        return self._lost

    def receive(self, wait_s: float = 0.0) -> NDArray[np.uint8]:
        """Return the received frames, a frame per row; of a frame longer than ROOM only the first bytes. The next call
        overwrites the rows."""
        if wait_s > 0 and not select.select([self.socket], [], [], wait_s)[0]:
            return self._in.frames[:0]
        got = _libc.recvmmsg(self.socket.fileno(), self._in.at(0), AT_ONCE, MSG_DONTWAIT, None)
        if got < 0:
            code = ctypes.get_errno()
            if code not in (errno.EAGAIN, errno.EINTR, errno.ENETDOWN):
                raise OSError(code, os.strerror(code))
            got = 0
        return self._in.frames[:got]

    def send(self, frames: NDArray[np.uint8]) -> None:
        """Send frames of equal length, a frame per row; while the interface's queue is full, wait."""
        for first in range(0, len(frames), AT_ONCE):
            chunk = frames[first : first + AT_ONCE]
            self._out.frames[: len(chunk), : frames.shape[1]] = chunk
            self._out.vectors["length"] = frames.shape[1]
            sent = 0
            while sent < len(chunk):
                done = _libc.sendmmsg(self.socket.fileno(), self._out.at(sent), len(chunk) - sent, 0)
                if done < 0:
                    code = ctypes.get_errno()
                    if code not in (errno.ENOBUFS, errno.EAGAIN, errno.EINTR):
                        raise OSError(code, os.strerror(code))
                    time.sleep(PAUSE_S)
                sent += max(0, done)
