"""Prints the software bill of materials of a release, as a CycloneDX document. Run as `bin/sbom`.

Its only sources are the lock list, the list of vendored files and pyproject.toml, so the same commit gives the same
bytes: there is no timestamp, and the serial number is a hash of the content.
"""

import hashlib
import json
import re
import sys
import tomllib
import uuid
from typing import Any

from tests.support.project import PACKAGE, ROOT
from tests.support.third_party import PINNED

HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
CARRIED = re.compile(r"^\| `(?P<name>[\w.-]+)` \|[^|]*\| (?P<version>[^|]+) \|", re.MULTILINE)
# CycloneDX allows several hashes per component: ours are of the files that an installation accepts.
HASHES_ARE = {"name": "regulars:hashes", "value": "one for each distribution file that the lock list accepts"}


def document() -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    product = {
        "type": "application",
        "bom-ref": "regulars",
        "name": project["name"],
        "version": project["version"],
        "licenses": [{"license": {"id": project["license"]}}],
    }
    components = [*installed((ROOT / "requirements" / "runtime.txt").read_text()), *carried()]
    content = json.dumps([product, components], sort_keys=True).encode()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.UUID(bytes=hashlib.sha256(content).digest()[:16], version=4)}",
        "version": 1,
        "metadata": {"component": product},
        "components": components,
        "dependencies": [{"ref": "regulars", "dependsOn": [each["bom-ref"] for each in components]}],
    }


def installed(lock: str) -> list[dict[str, Any]]:
    """One component per pin; a package that is pinned twice, for different Pythons, has two."""
    pins = list(PINNED.finditer(lock))
    ends = [pin.start() for pin in pins[1:]] + [len(lock)]
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{pin['name']}@{pin['version']}",
            "name": pin["name"],
            "version": pin["version"],
            "purl": f"pkg:pypi/{pin['name']}@{pin['version']}",
            "hashes": [{"alg": "SHA-256", "content": each} for each in HASH.findall(lock, pin.start(), end)],
            "properties": [HASHES_ARE],
        }
        for pin, end in zip(pins, ends, strict=True)
    ]


def carried() -> list[dict[str, Any]]:
    """Vendored files in this repository that a release contains."""
    listed = (PACKAGE / "vendor" / "README.md").read_text()
    return [
        {
            "type": "library",
            "bom-ref": f"vendor/{row['name']}",
            "name": row["name"],
            "version": row["version"],
            "hashes": [
                {"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}
                for path in sorted((PACKAGE / "vendor" / row["name"]).iterdir())
            ],
        }
        for row in CARRIED.finditer(listed)
    ]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(document(), indent=2) + "\n")
