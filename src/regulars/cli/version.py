"""Which release this is, whether it was installed or runs from a clone."""

import importlib.metadata
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[3] / "pyproject.toml"


def running() -> str:
    """A clone knows best: an older release may be installed beside it."""
    if PROJECT.is_file():
        version: str = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["version"]
        return version
    return importlib.metadata.version("regulars")
