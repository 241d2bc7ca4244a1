"""Choose the account of the operating system under which PostgreSQL runs: that of this process, but never root."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from regulars.kit import disk
from regulars.postgres.errors import EmbeddedDatabaseError

DEDICATED_ACCOUNT = "regulars-db"
PROGRAM_SECONDS_MAX = 120
ACCOUNT_TOOLS_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"
# Locked while the account is created: the folder exists on every machine, and the tools that create accounts do not
# lock it.
LOCKED_FOLDER = "/etc"


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    gid: int
    # Whether it is our dedicated account, because this process runs as root, which PostgreSQL refuses.
    is_dedicated: bool


def choose() -> Account:
    uid = os.geteuid()
    if uid != 0:
        try:
            entry = pwd.getpwuid(uid)
        except KeyError:
            raise EmbeddedDatabaseError(
                f"PostgreSQL needs an account with a name, and user id {uid} has none on this machine; "
                "add one or set DATABASE_URL."
            ) from None
        return Account(name=entry.pw_name, uid=uid, gid=os.getegid(), is_dedicated=False)
    entry = _find_or_create_account()
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, is_dedicated=True)


def run(
    account: Account, command: Sequence[str | Path], *, folder: Path, descriptors: Sequence[int] = ()
) -> subprocess.CompletedProcess[str]:
    """Run one of PostgreSQL's programs under the account until it ends; its environment has only our PATH."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    try:
        return subprocess.run(  # noqa: S603  # the programs are PostgreSQL's own and the arguments ours
            [str(argument) for argument in command],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROGRAM_SECONDS_MAX,
            cwd=folder,
            env=environment,
            pass_fds=descriptors,
            umask=0o077,
            user=account.uid if account.is_dedicated else None,
            group=account.gid if account.is_dedicated else None,
            extra_groups=[] if account.is_dedicated else None,
        )
    except OSError as error:
        raise EmbeddedDatabaseError(
            f"PostgreSQL's program {command[0]} cannot be run ({error.strerror});"
            " install the packages of Regulars again."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise EmbeddedDatabaseError(
            f"PostgreSQL's program {command[0]} did not end within {PROGRAM_SECONDS_MAX} seconds."
        ) from error


def _find_or_create_account() -> pwd.struct_passwd:
    """Find or create the account that owns the data when root starts the database.

    It is a separate account: other services may run as `postgres` or as uid 65534, and could read the data.
    """
    try:
        return pwd.getpwnam(DEDICATED_ACCOUNT)
    except KeyError:
        with _creation_lock():
            return _create_account()


def _create_account() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(DEDICATED_ACCOUNT)
    except KeyError:
        useradd = shutil.which("useradd", path=ACCOUNT_TOOLS_PATH)
        adduser = shutil.which("adduser", path=ACCOUNT_TOOLS_PATH)
    if useradd:
        command = [useradd, "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
        command += ["--shell", "/usr/sbin/nologin", DEDICATED_ACCOUNT]
    elif adduser:
        command = [adduser, "-S", "-D", "-H", "-h", "/nonexistent", "-s", "/sbin/nologin", DEDICATED_ACCOUNT]
    else:
        raise EmbeddedDatabaseError(
            f"PostgreSQL refuses to run as root and there is no useradd to make the account {DEDICATED_ACCOUNT}; "
            "run as an ordinary user or set DATABASE_URL."
        )
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PROGRAM_SECONDS_MAX)  # noqa: S603  # fixed words only
    try:
        return pwd.getpwnam(DEDICATED_ACCOUNT)
    except KeyError:
        raise EmbeddedDatabaseError(
            f"PostgreSQL refuses to run as root and the account {DEDICATED_ACCOUNT} could not be made: "
            f"{' '.join(result.stderr.split())}"
        ) from None


@contextmanager
def _creation_lock() -> Iterator[None]:
    """Let one process create the account: of two at once, useradd gives the account of the first another user id, and
    the first can no longer read its data."""
    descriptor = os.open(LOCKED_FOLDER, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not disk.lock_within(descriptor, PROGRAM_SECONDS_MAX):
            raise EmbeddedDatabaseError(
                f"Another command has been making the account {DEDICATED_ACCOUNT} "
                f"for more than {PROGRAM_SECONDS_MAX} seconds."
            )
        yield
    finally:
        os.close(descriptor)
