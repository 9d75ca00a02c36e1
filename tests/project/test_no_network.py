"""The suite uses no network, and says so where a test would."""

from __future__ import annotations

import socket

import pytest

from tests.support.no_network import NetworkUsed

NEAR, FAR = ("127.0.0.1", 9), ("192.0.2.1", 80)


@pytest.mark.parametrize("address", [NEAR, FAR])
def test_a_connection_is_refused(address: tuple[str, int]) -> None:
    for connect in (socket.socket.connect, socket.socket.connect_ex):
        with socket.socket() as one, pytest.raises(NetworkUsed):
            connect(one, address)


@pytest.mark.loopback
def test_this_machine_is_allowed_where_a_mark_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
    with socket.socket() as one, pytest.raises(NetworkUsed):
        one.connect(FAR)
