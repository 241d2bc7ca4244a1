"""Load and save the mapping of a file: which column is which field, and how the file writes amounts and times. It comes
from the options of the command, or from a saved mapping file."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

from regulars.imports.cells import Amounts, FileFormat
from regulars.imports.model import FileError
from regulars.kit.time_zones import read_zone

AMOUNTS: Final = ("cents", "decimal")
# The keys of a mapping file.
MAPPING_KEYS: Final = ("amounts", "timezone", "sheet", "columns")


@dataclass(frozen=True, slots=True)
class FileMapping:
    """`columns` maps a name in the file's header to a field of the API, or to an empty string to ignore the column."""

    columns: Mapping[str, str] = field(default_factory=dict)
    file_format: FileFormat = field(default_factory=FileFormat)
    sheet: str | None = None


def load_mapping(
    mapping_file: Path | None, pairs: Iterable[str], *, amounts: str | None, timezone: str | None, sheet: str | None
) -> FileMapping:
    """Read the mapping file; options of the command take precedence."""
    values = _read_mapping_file(mapping_file) if mapping_file else {}
    columns = {**values.get("columns", {}), **dict(_parse_pair(each) for each in pairs)}
    amounts_text = amounts or values.get("amounts", "cents")
    if amounts_text not in AMOUNTS:
        raise FileError(f"Amounts are {' or '.join(AMOUNTS)}, not '{amounts_text}'.")
    known_amounts: Amounts = "decimal" if amounts_text == "decimal" else "cents"
    zone = timezone or values.get("timezone")
    return FileMapping(
        columns=columns,
        file_format=FileFormat(amounts=known_amounts, timezone=_find_zone(zone) if zone else None),
        sheet=sheet or values.get("sheet"),
    )


def write_mapping(path: Path, mapping: FileMapping) -> None:
    """Save the mapping in a file that `load_mapping` reads. JSON strings are valid TOML strings."""
    lines = [f'amounts = "{mapping.file_format.amounts}"']
    if mapping.file_format.timezone is not None:
        lines.append(f'timezone = "{mapping.file_format.timezone.key}"')
    if mapping.sheet is not None:
        lines.append(f"sheet = {json.dumps(mapping.sheet)}")
    lines += ["", "[columns]", *(f"{json.dumps(name)} = {json.dumps(to)}" for name, to in mapping.columns.items())]
    try:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise FileError(f"The mapping {path} cannot be written: {error.strerror}.") from error


def _parse_pair(text: str) -> tuple[str, str]:
    name, separator, field_name = text.rpartition("=")
    if not separator or not name.strip():
        raise FileError(f"--map takes FILE COLUMN=OUR COLUMN, such as Ticket=external_id, not '{text}'.")
    return name.strip(), field_name.strip()


def _find_zone(name: str) -> ZoneInfo:
    zone = read_zone(name)
    if zone is None:
        raise FileError(f"'{name}' is not a time zone such as Europe/Paris.")
    return zone


def _read_mapping_file(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FileError(f"The mapping {path} cannot be read: {error}.") from error
    unknown = [name for name in values if name not in MAPPING_KEYS]
    if unknown:
        raise FileError(f"The mapping {path} has the unknown name '{unknown[0]}'; known are {', '.join(MAPPING_KEYS)}.")
    columns = values.get("columns", {})
    texts = [values.get(name, "") for name in ("amounts", "timezone", "sheet")]
    if not isinstance(columns, dict) or not all(isinstance(each, str) for each in (*columns.values(), *texts)):
        raise FileError(f"All values in the mapping {path} must be strings.")
    return values
