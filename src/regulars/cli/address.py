"""Find the address of the server for the links and hints that commands print."""

from regulars.kit.settings import Settings
from regulars.processes import serve_lock


def find_address(settings: Settings) -> str:
    """The public address; without one, where `regulars serve` runs on this machine; else where it would."""
    return settings.public_url or serve_lock.find_address(settings.data_dir) or settings.base_url
