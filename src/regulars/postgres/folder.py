"""The data folder of the embedded PostgreSQL: its layout and permissions, and the folder of its socket."""

import hashlib
import os
import stat
from pathlib import Path
from typing import Final

from regulars.kit import disk
from regulars.postgres import account as accounts
from regulars.postgres.account import Account
from regulars.postgres.errors import EmbeddedDatabaseError

# The kernel's limit is 104 bytes on macOS and 108 on Linux, its closing zero included.
SOCKET_PATH_BYTES_MAX = 103
PRIVATE_MODE = 0o700
# PostgreSQL's pg_ctl puts the path between double quotes for the shell without escaping it.
UNSAFE_IN_PATHS = ('"', "$", "`", "\\", "\n")
SOCKET_NAME = ".s.PGSQL.5432"
SHORT_SOCKET_PARENT = Path("/tmp")  # noqa: S108  # the folder in it is made 0700 and its owner is checked


class Folder:
    """The paths in a data folder, whose own path is `root`.

    If the user root starts the database, the folder and its settings belong to root, so that a compromised database
    cannot redirect root's writes by a symbolic link; only `cluster`, `socket` and `logs` belong to the database's
    account.
    """

    def __init__(self, root: Path) -> None:
        self.root: Final = root
        self.cluster: Final = root / "cluster"
        self.unfinished_cluster: Final = root / "cluster.unfinished"
        self.logs: Final = root / "logs"
        self.programs: Final = root / "programs"
        self.settings: Final = root / "settings"
        self.start_lock: Final = root / "start.lock"
        self.postmaster_lock: Final = root / "postmaster.lock"
        self.users_lock: Final = root / "users.lock"

    @property
    def socket(self) -> Path:
        in_data_folder = self.root / "socket"
        if len(os.fsencode(in_data_folder / SOCKET_NAME)) <= SOCKET_PATH_BYTES_MAX:
            return in_data_folder
        name = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        return SHORT_SOCKET_PARENT / f"regulars-{name}"


def prepare(data_dir: Path, account: Account) -> Folder:
    """Create the data folder if it is missing, and refuse one that another user could change.

    Permissions of existing folders are not changed, with one exception: if root starts the database, the group of its
    account gets access to a data folder that is empty (except for locks) or already has our start lock.
    """
    folder = Folder(data_dir)
    if any(character in str(data_dir) for character in UNSAFE_IN_PATHS):
        raise EmbeddedDatabaseError(
            f"The data folder {data_dir} has a quote, dollar, backslash or line break in its name; "
            "set REGULARS_DATA_DIR to another."
        )
    try:
        is_new = _make_with_parents(data_dir)
        status = data_dir.stat()
        if not stat.S_ISDIR(status.st_mode):
            raise EmbeddedDatabaseError(f"The data folder {data_dir} is not a folder.")
        if status.st_uid != os.geteuid():
            raise EmbeddedDatabaseError(
                f"The data folder {data_dir} belongs to another user; run the command as its owner, "
                "or set REGULARS_DATA_DIR."
            )
        if status.st_mode & stat.S_IWOTH:
            raise EmbeddedDatabaseError(
                f"Everybody may write into {data_dir}; set REGULARS_DATA_DIR to a folder of its own."
            )
        if account.is_dedicated and (is_new or folder.start_lock.exists() or _holds_only_locks(data_dir)):
            os.chown(data_dir, 0, account.gid)
            data_dir.chmod(0o750)
    except OSError as error:
        raise EmbeddedDatabaseError(
            f"The data folder {data_dir} cannot be used ({error.strerror}); set REGULARS_DATA_DIR to one that can."
        ) from error
    return folder


def create_subfolders(folder: Folder, account: Account) -> None:
    """Create the folders inside the data folder and the folder of the socket; the caller holds the start lock."""
    for path in (folder.settings, folder.programs):
        _make(path, mode=0o755 if account.is_dedicated else 0o700)
    _check_reachable(folder, account)
    for path in (folder.logs, folder.socket):
        _make(path, mode=0o700, owner=account)
    _check_private(folder.socket, account)
    if folder.socket.parent != folder.root:
        # Note the path of the socket in the data folder, for operators.
        (folder.root / "socket-folder").write_text(f"{folder.socket}\n")


def _make_with_parents(data_dir: Path) -> bool:
    if data_dir.exists():
        return False
    missing = [path for path in (data_dir, *data_dir.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o755, exist_ok=True)
        # With a strict umask of root, the database's account could not enter the new folders.
        path.chmod(0o700 if path == data_dir else 0o755)
        disk.sync(path.parent)
    return True


def _holds_only_locks(data_dir: Path) -> bool:
    return all(path.suffix == ".lock" for path in data_dir.iterdir())


def _make(path: Path, *, mode: int, owner: Account | None = None) -> None:
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return
    if owner is not None and owner.is_dedicated:
        os.chown(path, owner.uid, owner.gid)
    path.chmod(mode)


def _check_private(path: Path, account: Account) -> None:
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != account.uid or stat.S_IMODE(status.st_mode) != PRIVATE_MODE:
        raise EmbeddedDatabaseError(
            f"The socket's folder {path} is not a folder that only {account.name} can enter; remove it and try again."
        )


def _check_reachable(folder: Folder, account: Account) -> None:
    if not account.is_dedicated:
        return
    result = accounts.run(account, ["/bin/sh", "-c", 'cd "$0"', folder.settings], folder=Path("/"))
    if result.returncode != 0:
        raise EmbeddedDatabaseError(
            f"The database's account {account.name} cannot enter {folder.root}, because a folder above it is closed to "
            "other users; set REGULARS_DATA_DIR to a folder such as /var/lib/regulars."
        )
