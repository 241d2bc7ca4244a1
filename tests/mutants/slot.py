"""A slot: a copy of the committed project in which one pytest at a time runs on changed source.

Its PostgreSQL server and a migrated template stay for all runs.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from tests.mutants.template import TEMPLATE_VARIABLE
from tests.support import database

ROOT: Final = Path(__file__).parents[2]
OUT_OF_TIME: Final = -1

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Slot:
    root: Path
    # For every pytest of the slot.
    arguments: tuple[str, ...]
    variables: dict[str, str]
    python: str

    @property
    def log(self) -> Path:
        return self.root.parent / "pytest.log"

    def pytest(self, arguments: Sequence[str], *, seconds_max: float, variables: dict[str, str]) -> int:
        """Runs pytest and ends all processes that it started; returns its exit code or OUT_OF_TIME."""
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("REGULARS_")},
            "PYTHONPATH": f"{self.root / 'src'}{os.pathsep}{self.root}",
            **self.variables,
            **variables,
        }
        with (
            self.log.open("w") as log,
            subprocess.Popen(
                [self.python, "-m", "pytest", "-p", "no:cacheprovider", *self.arguments, *arguments],
                cwd=self.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            try:
                return process.wait(seconds_max)
            except subprocess.TimeoutExpired:
                return OUT_OF_TIME
            finally:
                # Without a process left there is no group.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def new_slot(folder: Path) -> Iterator[Slot]:
    root = folder / "project"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(root)], check=True)
    _link_environment(root / ".venv")
    with (
        database.throwaway_server(database.new_data_folder()) as url,
        database.migrated_template(url) as template,
    ):
        plugin = ("-p", "tests.mutants.template", "--database-url", url)
        yield Slot(root, plugin, {TEMPLATE_VARIABLE: template}, str(root / ".venv" / "bin" / "python"))


def for_each(items: Iterable[Item], slots: Sequence[Slot], act: Callable[[Slot, Item], None]) -> None:
    """Calls `act` for each item in a free slot, in their order. After an error or an interruption it starts no more."""
    waiting = deque(items)

    def work(slot: Slot) -> None:
        while True:
            try:
                item = waiting.popleft()
            except IndexError:
                return
            act(slot, item)

    with ThreadPoolExecutor(len(slots)) as pool:
        try:
            list(pool.map(work, slots))
        except BaseException:
            waiting.clear()
            raise


def _link_environment(folder: Path) -> None:
    """A virtual environment with hard links to the libraries of ours, and with the slot's package."""
    ours = Path(sys.prefix)
    shutil.copytree(ours, folder, symlinks=True, copy_function=os.link)
    scripts = [path for path in (folder / "bin").iterdir() if path.is_file() and not path.is_symlink()]
    for path in (
        *scripts,
        folder / "pyvenv.cfg",
        *folder.glob("lib/*/site-packages/regulars.pth"),
        *folder.glob(".made*"),
    ):
        content = path.read_bytes()
        # A new file: a change of the link would change ours.
        path.unlink()
        path.write_bytes(content.replace(os.fsencode(ROOT), os.fsencode(folder.parent)))
        path.chmod(0o755 if path.parent.name == "bin" else 0o644)
