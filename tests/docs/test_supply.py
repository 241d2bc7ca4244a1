"""What a release is made of, and the rights it is run with."""

import json
import re
import subprocess
from uuid import UUID

import yaml
from tests.support import sbom
from tests.support.project import ROOT

EXACT = re.compile(r":\d+\.\d+\.\d+(-[\w.-]+)?$")


def test_the_bill_of_materials_names_everything_that_is_pinned_or_carried():
    printed = subprocess.run([ROOT / "bin" / "sbom"], capture_output=True, text=True, check=True, timeout=60, cwd="/")
    document = json.loads(printed.stdout)
    assert (document["bomFormat"], document["specVersion"], document["version"]) == ("CycloneDX", "1.5", 1)
    assert UUID(document["serialNumber"].removeprefix("urn:uuid:")).version == 4
    found = {(each["name"], each["version"]) for each in document["components"]}
    lock = (ROOT / "requirements" / "runtime.txt").read_text()
    pinned = {tuple(line.split(" ")[0].split("==")) for line in lock.splitlines() if re.match(r"\w.*==", line)}
    assert pinned <= found
    assert {each["bom-ref"] for each in document["components"] if "purl" not in each} == {
        "vendor/htmx",
        "vendor/inter",
        "vendor/zxcvbn",
    }
    hashes = [each["content"] for one in document["components"] for each in one["hashes"] if "purl" in one]
    assert sorted(hashes) == sorted(sbom.HASH.findall(lock))
    references = [each["bom-ref"] for each in document["components"]]
    assert len(set(references)) == len(references)
    assert document["dependencies"] == [{"ref": "regulars", "dependsOn": references}]
    assert document == sbom.document(), "the same commit gives the same document"


def test_containers_drop_their_rights_and_name_exact_versions():
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert "build" in service or EXACT.search(service["image"]), name
    (base,) = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert EXACT.search(base)


def test_every_version_that_runs_is_the_one_that_is_tested_and_measured():
    """A list that was written on one version of Python leaves out what another needs."""

    def pins(name: str) -> set[str]:
        return {line for line in (ROOT / "requirements" / name).read_text().splitlines() if "==" in line}

    for name in ("dev.txt", "bench.txt"):
        assert pins("runtime.txt") - pins(name) == set(), name
