"""Replace constants of the program in a process that a test starts: waits that a test makes shorter or longer."""

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def replace_constants(waits: Mapping[str, Any]) -> None:
    """Replace `regulars.room.module.NAME` there and in every module that has taken it over from there."""
    for path, value in waits.items():
        module, _, name = path.rpartition(".")
        before = getattr(import_module(module), name)
        for loaded in list(sys.modules.values()):
            if getattr(loaded, "__name__", "").startswith("regulars.") and vars(loaded).get(name) is before:
                vars(loaded)[name] = value
