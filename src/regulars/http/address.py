"""The address at which the caller reached this server."""

import re
from collections.abc import Mapping
from typing import Any

_VALID_HOST = re.compile(r"[A-Za-z0-9.\-]{1,255}(:[0-9]{1,5})?|\[[0-9a-fA-F:.]{2,45}\](:[0-9]{1,5})?")


def base_url(scope: Mapping[str, Any], host: bytes) -> str:
    """The address that the caller used: from the Host header if it is valid, else from the socket of this server."""
    address = known_address(scope["scheme"], host)
    if address:
        return address
    server = scope.get("server") or ("localhost", 80)
    return f"{scope['scheme']}://{server[0]}:{server[1]}"


def known_address(scheme: str, host: bytes) -> str:
    """The address in a Host header; empty if the header is not a valid host."""
    name = host.decode("latin-1")
    return f"{scheme}://{name}" if _VALID_HOST.fullmatch(name) else ""
