"""Files and folders that survive a power cut: they are synced to disk before a name refers to them."""

import os
from pathlib import Path


def sync_tree(folder: Path) -> None:
    """Bring every file and every folder beneath, and the folder itself, to the disk."""
    for parent, _folders, names in os.walk(folder, topdown=False):
        for name in names:
            path = Path(parent, name)
            if not path.is_symlink():
                sync(path)
        sync(Path(parent))


def sync(path: Path) -> None:
    """A folder that is synced keeps the names in it; what they lead to has to be synced by itself."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
