"""Tests open no connection but to this machine, and that only where a mark says so."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class NetworkUsed(BaseException):
    """A test tried to connect; no code that handles errors catches it."""


@contextmanager
def guard_network(*, loopback: bool) -> Iterator[None]:
    """Refuse every connection, but for those to the loopback address where they are allowed."""
    plain, plain_ex = socket.socket.connect, socket.socket.connect_ex

    def check(own: socket.socket, address: Any) -> None:
        if not isinstance(address, tuple):  # a path: a Unix socket
            return
        # A datagram socket that is connected sends nothing: dask learns its own address so.
        if loopback and (address[0] in LOOPBACK or own.type == socket.SOCK_DGRAM):
            return
        raise NetworkUsed(f"a connection to {address}")

    def connect(own: socket.socket, address: Any) -> None:
        check(own, address)
        plain(own, address)

    def connect_ex(own: socket.socket, address: Any) -> int:
        check(own, address)
        return plain_ex(own, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect)
        patch.setattr(socket.socket, "connect_ex", connect_ex)
        yield
