"""Which tests reach which probe: runs the tests on the package with probes, and stores what they reach.

The file in `build` is used again for the same source. Test files that have changed since run again; after a change of
a fixture, delete the file.
"""

import base64
import json
import subprocess
import threading
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.mutants import record
from tests.mutants.probes import compile_with_probes, remove_bytecode
from tests.mutants.slot import OUT_OF_TIME, ROOT, Slot, for_each

# A run of pytest costs a few seconds for its imports and servers; many runs keep all slots busy to the end.
FILES_PER_RUN_MAX: Final = 16
RUN_SECONDS_MAX: Final = 1800
LOG_CHARACTERS_MAX: Final = 2000


@dataclass(frozen=True, slots=True)
class Reach:
    test: str
    seconds: float
    # Of the probes that were asked for; and how many of all.
    probes: frozenset[int]
    total: int

    @property
    def file(self) -> str:
        return self.test.partition("::")[0]


def stored_in(folder: Path) -> Path:
    return folder / f"reach-{_git('rev-parse', 'HEAD:src')[:12]}.jsonl"


def collect(slots: Sequence[Slot], stored: Path, say: Callable[[str], None], folders: Collection[str] = ()) -> None:
    """Runs every test file that is new or changed since it was stored; of these folders, or of all."""
    blobs = test_files()
    known = {file for file, blob, _records in _stored_files(stored) if blobs.get(file) == blob}
    missing = sorted(file for file in blobs if file not in known and (not folders or file.split("/")[1] in folders))
    if not missing:
        return
    say(f"collecting which lines {len(missing)} test files reach")
    writing = threading.Lock()

    def record_run(slot: Slot, files: list[str]) -> None:
        code, records = record_files(slot, files)
        log = slot.log.read_text()
        if code not in (0, 1):
            reason = "out of time" if code == OUT_OF_TIME else f"pytest ended with {code}"
            say(f"{' '.join(files)}: {reason}\n{log[-LOG_CHARACTERS_MAX:]}")
            return
        with writing, stored.open("a") as file:
            file.write(records)
            file.write(json.dumps({"files": {name: blobs[name] for name in files}}) + "\n")
        for line in log.splitlines():
            if line.startswith(("FAILED", "ERROR")):
                say(f"left out, as it fails without a mutant: {line}")

    for slot in slots:
        compile_with_probes(slot.root, _shared(slot))
    for_each(_divide(missing), slots, record_run)
    for slot in slots:
        remove_bytecode(slot.root)


def record_files(slot: Slot, files: Sequence[str]) -> tuple[int, str]:
    """Runs test files on the compiled probes; returns pytest's exit code and a line of JSON for each test."""
    records = slot.root.parent / "records.jsonl"
    records.unlink(missing_ok=True)
    variables = {record.SHARED_VARIABLE: str(_shared(slot)), record.RECORDS_VARIABLE: str(records)}
    code = slot.pytest(["-p", "tests.mutants.record", *files], seconds_max=RUN_SECONDS_MAX, variables=variables)
    return code, records.read_text() if records.exists() else ""


def load(stored: Path, probes: Collection[int]) -> tuple[list[Reach], frozenset[int]]:
    """The tests of the committed test files, with which of these probes they reach; and those that imports reach."""
    blobs = test_files()
    newest = {file: records for file, blob, records in _stored_files(stored) if blobs.get(file) == blob}
    return read_records((each for records in newest.values() for each in records), probes)


def read_records(records: Iterable[dict[str, Any]], probes: Collection[int]) -> tuple[list[Reach], frozenset[int]]:
    tests: dict[str, Reach] = {}
    imported: set[int] = set()
    for each in records:
        reached = zlib.decompress(base64.b85decode(each["reached"]))
        found = frozenset(probe for probe in probes if reached[probe])
        if each["test"] == record.IMPORTS:
            imported |= found
        else:
            tests[each["test"]] = Reach(each["test"], each["seconds"], found, sum(reached))
    return list(tests.values()), frozenset(imported)


def _shared(slot: Slot) -> Path:
    return slot.root.parent / "reached"


def test_files() -> dict[str, str]:
    """The committed test files, with the hashes of their content."""
    listed = (line.split(None, 3) for line in _git("ls-tree", "-r", "HEAD", "tests").splitlines())
    return {
        path: blob
        for _mode, _type, blob, path in listed
        if Path(path).name.startswith("test_") and path.endswith(".py")
    }


def _stored_files(stored: Path) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Each stored test file with its hash and its records; of a file stored twice the later one comes later."""
    run: list[dict[str, Any]] = []
    if not stored.exists():
        return
    with stored.open() as lines:
        for line in lines:
            read = json.loads(line)
            if "files" not in read:
                run.append(read)
                continue
            for file, blob in read["files"].items():
                yield file, blob, [each for each in run if each["test"].partition("::")[0] in (file, record.IMPORTS)]
            run = []


def _divide(files: list[str]) -> list[list[str]]:
    """Runs of files of one folder, which share servers; the longest first."""
    folders: dict[str, list[str]] = {}
    for file in files:
        folders.setdefault(str(Path(file).parent), []).append(file)
    runs = [
        inside[first : first + FILES_PER_RUN_MAX]
        for inside in folders.values()
        for first in range(0, len(inside), FILES_PER_RUN_MAX)
    ]
    return sorted(runs, key=lambda run: -sum((ROOT / file).stat().st_size for file in run))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
