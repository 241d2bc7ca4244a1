"""Check options, settings and port of `regulars serve` before its packages are installed: `bin/serve` runs this file
with any Python. A mistake shows at once, and not after minutes of installing."""

import argparse
import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Final

from regulars.kit import setting_kinds as kinds
from regulars.kit.settings import Settings, SettingsError, declarations, load
from regulars.processes.listening import PortError, check_port

FAILED: Final = 1
USAGE: Final = 2
_HELP_OPTIONS: Final = {"-h", "--help"}


def main(arguments: Sequence[str]) -> int:
    """Return the exit code that `regulars serve` would end with, 0 if it can start."""
    if not _HELP_OPTIONS.isdisjoint(arguments):
        # The command itself prints its help.
        return 0
    try:
        check_port(with_options(load(), arguments))
    except (SettingsError, PortError) as error:
        sys.stderr.write(f"regulars: {error}\n")
        return USAGE if isinstance(error, SettingsError) else FAILED
    return 0


def with_options(settings: Settings, arguments: Sequence[str]) -> Settings:
    """Return the settings with the options of `regulars serve`; exit with a sentence at a wrong one."""
    parser = argparse.ArgumentParser(prog="regulars serve", allow_abbrev=False, add_help=False)
    declared = declarations()
    for name in ("workers", "port"):
        parser.add_argument(f"--{name}", type=_whole_number(declared[name].kind))
    parser.add_argument("--host")
    parser.add_argument("--no-worker", action="store_true")
    options = parser.parse_args(arguments)
    changes = {name: getattr(options, name) for name in ("workers", "host", "port")}
    return dataclasses.replace(settings, **{name: value for name, value in changes.items() if value not in {None, ""}})


def _whole_number(kind: kinds.SettingKind) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            return int(kind.parse(text))
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{error}, not {text!r}") from None

    return read


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
