"""Under which address a caller reached this server."""

import re
from collections.abc import Mapping
from typing import Any

_SANE_HOST = re.compile(r"[A-Za-z0-9.\-]{1,255}(:[0-9]{1,5})?|\[[0-9a-fA-F:.]{2,45}\](:[0-9]{1,5})?")


def base_url(scope: Mapping[str, Any], host: bytes) -> str:
    """The address the caller used, as far as the request tells; a Host that names no machine is not repeated."""
    name = host.decode("latin-1")
    if not _SANE_HOST.fullmatch(name):
        server = scope.get("server") or ("localhost", 80)
        name = f"{server[0]}:{server[1]}"
    return f"{scope['scheme']}://{name}"
