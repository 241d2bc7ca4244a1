"""The address at which callers and people reach this server: that of the setting, else the one in the database.

Every process has one object. What needs the address reads it anew each time, because a stored one may change.
"""


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

    def update(self, stored: str | None) -> None:
        self._stored = stored
