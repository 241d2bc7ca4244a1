"""The address at which callers and people reach this server: that of the setting, else the one in the database.

Every process has one object. What needs the address reads it anew each time, because a stored one may change.
"""

import ipaddress
from urllib.parse import urlsplit


class PublicAddress:
    def __init__(self, setting: str | None = None) -> None:
        """`setting` wins over a stored address."""
        self._setting = setting
        self._stored: str | None = None

    @property
    def is_fixed(self) -> bool:
        return self._setting is not None

    @property
    def url(self) -> str | None:
        return self._setting or self._stored

    @property
    def callback_url(self) -> str | None:
        """The address for callbacks of other machines: none if the stored one leads to this machine only. A setting
        is used as it is, because the provider of a test may run here."""
        stored = self._stored
        return self._setting or (None if stored is None or is_loopback(urlsplit(stored).hostname or "") else stored)

    def update(self, stored: str | None) -> None:
        self._stored = stored


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach it by this name or address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
