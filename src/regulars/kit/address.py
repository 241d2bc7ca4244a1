"""Find the base URL at which a caller reached this server, for links in responses."""

import re
from collections.abc import Mapping
from typing import Any

_VALID_HOST = re.compile(r"[A-Za-z0-9.\-]{1,255}(:[0-9]{1,5})?|\[[0-9a-fA-F:.]{2,45}\](:[0-9]{1,5})?")


def base_url(scope: Mapping[str, Any], host: bytes) -> str:
    """Return the URL of the Host header if the header is valid, else that of this server's socket."""
    url = url_of_host(scope["scheme"], host)
    if url:
        return url
    server = scope.get("server") or ("localhost", 80)
    return f"{scope['scheme']}://{server[0]}:{server[1]}"


def url_of_host(scheme: str, host: bytes) -> str:
    """Return the URL of a Host header; empty if the header is not a valid host."""
    name = host.decode("latin-1")
    return f"{scheme}://{name}" if _VALID_HOST.fullmatch(name) else ""
