"""Bind the port of the server. Only the standard library and the settings are imported: `bin/serve` binds the port for
a moment with any Python, before it installs the packages."""

import contextlib
import errno
import socket
import time
from collections.abc import Iterator
from typing import Final

from regulars.kit.settings import Settings

BACKLOG: Final = 2048
# The child processes of a killed server release the port within this time.
PORT_WAIT_S: Final = 2.0
PORT_RETRY_S: Final = 0.05


class PortError(Exception):
    """The server cannot listen where it should; the message is a sentence for the operator."""


@contextlib.contextmanager
def bound_socket(settings: Settings) -> Iterator[socket.socket]:
    """Bind the port without listening: until `listen` is called, connections are refused and do not wait."""
    try:
        family, kind, protocol, _name, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError) as error:
        reason = error.strerror if isinstance(error, socket.gaierror) else "it cannot be looked up"
        raise PortError(f"The host '{settings.host}' is not an address: {reason}.") from None
    with socket.socket(family, kind, protocol) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _bind(bound, address, settings)
        yield bound


def listen(bound: socket.socket, settings: Settings) -> None:
    """Accept connections from now on. Two sockets that reuse the address can be bound to one port on Linux, and only
    one of them can listen."""
    try:
        bound.listen(BACKLOG)
    except OSError as error:
        raise _explain(error, settings) from None


def check_port(settings: Settings) -> None:
    """Raise if the port is taken, without keeping it."""
    with bound_socket(settings) as bound:
        listen(bound, settings)


def _bind(bound: socket.socket, address: object, settings: Settings) -> None:
    deadline = time.monotonic() + PORT_WAIT_S
    while True:
        try:
            bound.bind(address)  # type: ignore[arg-type]  # its type depends on the family getaddrinfo chose
            return
        except OSError as error:
            if error.errno == errno.EADDRINUSE and time.monotonic() < deadline:
                time.sleep(PORT_RETRY_S)
                continue
            raise _explain(error, settings) from None


def _explain(error: OSError, settings: Settings) -> PortError:
    why = "is already in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
    return PortError(f"Port {settings.port} on {settings.host} {why}; choose another with --port.")
