"""How the runners of one launch communicate: the runner of rank 0 starts and ends the runs, the others report.

A message is one line of JSON, sent over TCP to or from the host of rank 0. Every runner derives the same list of runs
from the same command line, so that only the number of a run is sent. Nothing that is received is ever executed.
"""

import json
import select
import selectors
import socket
import time
from collections.abc import Iterable
from typing import Any, TypeAlias

from perfmodel.errors import PerfmodelError
from perfmodel.launch.processes.environment import Place

Message: TypeAlias = dict[str, Any]
_RETRY, _HELLO = 0.2, 2.0  # seconds
_LONGEST = 2**16  # bytes of a message


class Connection:
    """A connection on which lines of JSON go both ways."""

    def __init__(self, connected: socket.socket) -> None:
        """Use a connected socket, and close it in the end."""
        self.socket, self._buffer = connected, b""
        connected.settimeout(None)

    def send(self, message: Message) -> None:
        """Send a line; a closed connection is only noticed by `receive`."""
        try:
            self.socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            return

    def receive(self, seconds: float | None = None) -> list[Message] | None:
        """The messages that arrive within some seconds (None: wait without limit); None if the connection is closed."""
        if not select.select([self.socket], [], [], seconds)[0]:
            return []
        try:
            arrived = self.socket.recv(_LONGEST)
        except OSError:
            arrived = b""
        self._buffer += arrived
        if not arrived or len(self._buffer) > _LONGEST:
            return None
        *lines, self._buffer = self._buffer.split(b"\n")
        try:
            messages = [json.loads(line) for line in lines]
        except ValueError:
            return None
        return messages if all(isinstance(message, dict) for message in messages) else None

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()


class Hub:
    """Rank 0's side: a connection to every other runner."""

    def __init__(self, place: Place, asked: str, patience: float) -> None:
        """Wait at most `patience` seconds for all runners; `asked` is the digest of the runs, equal on all ranks."""
        self.connections: dict[int, Connection] = {}
        self.gone: set[int] = set()
        self._selector = selectors.DefaultSelector()
        deadline = time.monotonic() + patience
        with _listen(place) as server:
            while len(self.connections) < place.world - 1:
                server.settimeout(max(deadline - time.monotonic(), _RETRY))
                self._greet(_accept(server, place, sorted(self.connections), deadline), place, asked)
        for rank, connection in self.connections.items():
            self._selector.register(connection.socket, selectors.EVENT_READ, (rank, connection))

    def _greet(self, accepted: socket.socket, place: Place, asked: str) -> None:
        connection = Connection(accepted)
        hello = (connection.receive(_HELLO) or [{}])[0]
        rank = hello.get("rank")
        if not isinstance(rank, int) or not 0 < rank < place.world or rank in self.connections:
            connection.close()  # not a rank of this launch
            return
        self.connections[rank] = connection
        if hello.get("asked") != asked:
            problem = f"rank {rank} was asked for other runs than rank 0; start all ranks with the same command line"
            self.tell({"refused": problem})
            raise PerfmodelError(problem)

    def tell(self, message: Message) -> None:
        """Send a message to all runners."""
        for connection in self.connections.values():
            connection.send(message)

    def heard(self, seconds: float) -> list[Message]:
        """The messages that arrive within some seconds. A runner that closes its connection is added to `gone`."""
        found: list[Message] = []
        for key, _ in self._selector.select(seconds):
            rank, connection = key.data
            messages = connection.receive()
            if messages is None:
                self._selector.unregister(connection.socket)
                self.gone.add(rank)
            found += [{**message, "rank": rank} for message in messages or []]
        return found

    def close(self) -> None:
        """Close all connections."""
        self._selector.close()
        for connection in self.connections.values():
            connection.close()


def call(place: Place, asked: str, patience: float) -> Connection:
    """Another rank's side: a connection to the runner of rank 0, which may start later than this one."""
    deadline = time.monotonic() + patience
    while True:
        try:
            connection = Connection(socket.create_connection((place.address, place.port), timeout=_HELLO))
        except OSError as error:
            if time.monotonic() > deadline:
                raise PerfmodelError(
                    f"rank {place.rank} cannot reach rank 0 at {place.address} port {place.port}: {error}"
                ) from None
            time.sleep(_RETRY)
            continue
        connection.send({"rank": place.rank, "asked": asked})
        return connection


def free_port() -> int:
    """A free port, on which torch will listen."""
    with socket.create_server(("", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _listen(place: Place) -> socket.socket:
    try:
        return socket.create_server(("", place.port), backlog=place.world)
    except OSError as error:
        raise PerfmodelError(
            f"rank 0 cannot listen on port {place.port}: {error.strerror}; set MASTER_PORT to a free one on every rank"
        ) from None


def _accept(server: socket.socket, place: Place, here: Iterable[int], deadline: float) -> socket.socket:
    while True:
        try:
            return server.accept()[0]
        except TimeoutError:
            if time.monotonic() > deadline:
                missing = sorted(set(range(1, place.world)) - set(here))
                named = ", ".join(map(str, missing[:8]))
                raise PerfmodelError(
                    f"{len(missing)} of {place.world} ranks have not connected in time (rank {named})"
                ) from None
