"""Replaces constants of the program in a process of a test, such as timeouts."""

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def replace_constants(constants: Mapping[str, Any]) -> None:
    """Replaces `regulars.room.module.NAME` there and in every module that imports it."""
    for path, value in constants.items():
        module, _, name = path.rpartition(".")
        before = getattr(import_module(module), name)
        for loaded in list(sys.modules.values()):
            if getattr(loaded, "__name__", "").startswith("regulars.") and vars(loaded).get(name) is before:
                vars(loaded)[name] = value
