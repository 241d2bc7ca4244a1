"""Declare every setting of Regulars (name, type, default, meaning, unit, bounds), and load and describe their values.

A value comes from the environment (`REGULARS_PORT`), else from a TOML file (`port = 8080`), else from its default.
An unknown name is an error: a typing mistake must not silently leave a default in force.
"""

import dataclasses
import difflib
import functools
import ipaddress
import logging
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, get_origin, get_type_hints

from regulars.kit import setting_kinds as kinds
from regulars.kit.setting_kinds import SettingKind

PREFIX: Final = "REGULARS_"
CONFIG_VARIABLE: Final = "REGULARS_CONFIG"
CONFIG_FILE_NAME: Final = "regulars.toml"
DATABASE_URL_VARIABLE: Final = "DATABASE_URL"
# Settings of earlier releases. A settings file or environment that still has one gets a warning, not an error.
REMOVED: Final = frozenset({"environment", "fast_lane", "write_path"})
# Variables of the test suite, which runs our commands as child processes that inherit them.
TEST_PREFIX: Final = "REGULARS_TEST_"
PORT_MAX: Final = 65_535
IPV6: Final = 6
MASK: Final = "***"

_log: Final = logging.getLogger(__name__)


class SettingsError(Exception):
    """The message is one sentence that says which setting is wrong and what would be right."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SettingDescription:
    """One setting with its value and description, for operators."""

    name: str
    variable: str
    value: str
    source: str
    kind: str
    unit: str | None
    default: str
    meaning: str


def default_data_dir() -> Path:
    """Return the system folder for root, the user of a service, and a folder in their home folder for other users."""
    if os.geteuid() == 0:
        return Path("/var/lib/regulars")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "regulars"
    # The XDG rules say that a relative path in the variable is to be ignored.
    configured = Path(os.environ.get("XDG_DATA_HOME", ""))
    return (configured if configured.is_absolute() else Path.home() / ".local" / "share") / "regulars"


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Settings:
    """All settings of one process. A field declares the type of a setting, the kind of its value, its meaning and its
    default; tests compare `docs/configuration.md` and `regulars config` with it."""

    database_url: Annotated[
        str | None,
        kinds.DATABASE_URL,
        "Address of a PostgreSQL server, version 15 or newer; without it Regulars runs its own PostgreSQL in the data"
        " folder. DATABASE_URL means the same.",
    ] = None
    data_dir: Annotated[
        Path, kinds.FOLDER, "Folder of the embedded database and of the files that running processes share."
    ] = dataclasses.field(default_factory=default_data_dir)
    host: Annotated[str, kinds.TEXT, "Address the server listens on; 0.0.0.0 is every interface."] = "127.0.0.1"
    port: Annotated[int, kinds.whole_number(0, PORT_MAX), "Port the server listens on; 0 lets the system choose."] = (
        8080
    )
    workers: Annotated[int, kinds.whole_number(1, 64), "Number of server processes that share the port."] = 1
    public_url: Annotated[
        str | None,
        kinds.PUBLIC_URL,
        "Address callers and people use, for links, signatures and the API description; it wins over the one that"
        " `regulars address set` or the owner of the only organization has stored. Without both it is the address the"
        " server listens on.",
    ] = None
    link_url: Annotated[
        str | None,
        kinds.PUBLIC_URL,
        "Address of a short host that leads to this server: links in texts become short links there, and their clicks"
        " are counted. Without it links stay as they were written.",
    ] = None
    link_fallback_url: Annotated[
        str | None,
        kinds.PUBLIC_URL,
        "Address that a short link shows while the database cannot be reached, such as that of the shop.",
    ] = None
    secret_key: Annotated[
        str | None,
        kinds.SECRET,
        "Key that seals secrets in the database: second factors, webhook secrets, provider credentials, and the secrets"
        " of organizations. Without it the embedded database keeps one in the file secret.key of the data folder;"
        " an external database needs it.",
    ] = None
    erasure_log: Annotated[
        Path | None,
        kinds.FILE,
        "File to which this node appends every erasure, outside the database, so that a restored backup brings no"
        " erased customer back; without it erasures.log in the data folder.",
    ] = None
    trusted_proxies: Annotated[
        tuple[str, ...],
        kinds.NETWORKS,
        "IP addresses or networks, separated by commas, whose X-Forwarded-For and X-Forwarded-Proto headers are"
        " believed.",
    ] = ()
    webhook_allow: Annotated[
        tuple[str, ...],
        kinds.NETWORKS,
        "Networks that webhooks may be sent to although they are not on the public internet, also in plain http: for a"
        " receiver on this machine or in an intranet.",
    ] = ()
    audit_address_days: Annotated[
        int,
        kinds.whole_number(1, 3660, unit="days"),
        "How long the audit log keeps the network addresses of visitors; the acts themselves stay.",
    ] = 396
    log_format: Annotated[
        str,
        kinds.one_of("auto", "console", "json"),
        "How log lines look; auto is console on a terminal and json elsewhere.",
    ] = "auto"
    log_level: Annotated[
        str,
        kinds.one_of("debug", "info", "warning", "error"),
        "The lowest level of log lines that are written.",
    ] = "info"
    rate_limit_per_s: Annotated[
        int, kinds.whole_number(0, 1_000_000), "Sustained requests per second for each API key; 0 is no limit."
    ] = 1000
    rate_limit_burst: Annotated[
        int, kinds.whole_number(1, 10_000_000), "Requests each API key may make in a burst after idle time."
    ] = 2000
    occurred_at_tolerance_s: Annotated[
        int,
        kinds.whole_number(0, 300, unit="s"),
        "How far ahead of the database's clock a sale may be dated, because registers run fast.",
    ] = 30
    default_country: Annotated[
        str | None,
        kinds.COUNTRY,
        "Country of phone numbers that profiles or opt-outs send without a country code, for organizations that have"
        " not set their own.",
    ] = None
    twilio_url: Annotated[
        str, kinds.PUBLIC_URL, "Where Twilio is reached, for organizations that send their texts through it."
    ] = "https://api.twilio.com"
    database_pool_max: Annotated[
        int, kinds.whole_number(2, 1000, unit="connections"), "Database connections each process keeps at most."
    ] = 10
    analysis_memory_mb: Annotated[
        int,
        kinds.whole_number(64, 1_048_576, unit="MB"),
        "Memory for the columns that segments are counted from; the least recently used are evicted first.",
    ] = 900
    statement_timeout_ms: Annotated[
        int,
        kinds.whole_number(0, 3_600_000, unit="ms"),
        "A statement that runs longer is cancelled; 0 is no limit. Those of requests have 9 s at most.",
    ] = 30_000
    lock_timeout_ms: Annotated[
        int, kinds.whole_number(1, 60_000, unit="ms"), "A statement that waits longer for a row is cancelled."
    ] = 500
    drain_s: Annotated[
        int,
        kinds.whole_number(0, 300, unit="s"),
        "How long a stopping server still answers new requests, and closes each connection after its response.",
    ] = 2
    shutdown_grace_s: Annotated[
        int, kinds.whole_number(0, 300, unit="s"), "How long a stopping server finishes the requests in flight."
    ] = 10
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        """Leave out secrets, so that they reach no log by accident."""
        values = (
            f"{name}={getattr(self, name)!r}"
            for name, declaration in declarations().items()
            if not declaration.kind.is_secret
        )
        return f"Settings({', '.join(values)})"

    @property
    def is_embedded(self) -> bool:
        return self.database_url is None

    @property
    def erasure_log_path(self) -> Path:
        return self.erasure_log or self.data_dir / "erasures.log"

    @property
    def own_url(self) -> str:
        """The URL at which this machine reaches the server; an IPv6 host needs brackets."""
        host = _reachable_host(self.host)
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}"


@dataclasses.dataclass(frozen=True)
class Declaration:
    """The metadata of a field of `Settings`."""

    kind: SettingKind
    meaning: str


@functools.cache
def declarations() -> dict[str, Declaration]:
    """Return every setting by its field name, in the order of the class."""
    annotations = get_type_hints(Settings, include_extras=True)
    return {
        name: Declaration(*hint.__metadata__) for name, hint in annotations.items() if get_origin(hint) is Annotated
    }


def _reachable_host(host: str) -> str:
    """The host at which this machine reaches a server that listens on the host."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if not address.is_unspecified:
        return host
    return "::1" if address.version == IPV6 else "127.0.0.1"


def variable_of(name: str) -> str:
    return PREFIX + name.upper()


def load(environ: Mapping[str, str] | None = None, toml_path: Path | None = None) -> Settings:
    """Read the environment and the TOML file; raise `SettingsError` at the first wrong setting."""
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    declared = declarations()
    from_environment = _environment_values(environ, declared)
    path = _find_file(environ, toml_path, from_environment)
    for name, raw in _file_values(path, declared).items():
        values[name] = _parse_value(declared[name], raw, label=f"'{name}' in {path}")
        sources[name] = str(path)
    for name, (variable, text) in from_environment.items():
        values[name] = _parse_value(declared[name], text, label=variable)
        sources[name] = variable
    return Settings(**values, sources=sources)


def describe(settings: Settings) -> list[SettingDescription]:
    """Describe every setting: its value, with passwords masked, where the value came from, and its meaning."""
    fields = {field.name: field for field in dataclasses.fields(Settings)}
    return [
        SettingDescription(
            name=name,
            variable=variable_of(name),
            value=_format_value(getattr(settings, name), declaration),
            source=settings.sources.get(name, "default"),
            kind=declaration.kind.name,
            unit=declaration.kind.unit,
            default=_format_default(fields[name], declaration),
            meaning=declaration.meaning,
        )
        for name, declaration in declarations().items()
    ]


def masked_url(url: str) -> str:
    """Mask the password of a URL, before the host or in the query.

    A password written without escapes may contain `/` and `@`, so everything up to the last `@` is removed.
    """
    url = re.sub(r"(?<=://)([^/@:]*):.*@", rf"\1:{MASK}@", url)
    return re.sub(r"(?i)([?&](?:password|sslpassword)=)[^&]*", rf"\1{MASK}", url)


def _environment_values(environ: Mapping[str, str], declared: Mapping[str, Declaration]) -> dict[str, tuple[str, str]]:
    variables = {variable_of(name): name for name in declared}
    values_by_name: dict[str, tuple[str, str]] = {}
    # An empty variable is how shells and compose files say "not set".
    if environ.get(DATABASE_URL_VARIABLE):
        values_by_name["database_url"] = (DATABASE_URL_VARIABLE, environ[DATABASE_URL_VARIABLE])
    for variable, text in environ.items():
        if not variable.startswith(PREFIX) or variable.startswith(TEST_PREFIX) or variable == CONFIG_VARIABLE:
            continue
        if variable.removeprefix(PREFIX).lower() in REMOVED:
            _log.warning("%s does nothing any more; take it out.", variable)
            continue
        if variable not in variables:
            raise SettingsError(f"{variable} is not a setting{_suggest_name(variable, [*variables, CONFIG_VARIABLE])}")
        if text:
            values_by_name[variables[variable]] = (variable, text)
    return values_by_name


def _find_file(
    environ: Mapping[str, str], toml_path: Path | None, from_environment: Mapping[str, tuple[str, str]]
) -> Path | None:
    path = toml_path or (Path(environ[CONFIG_VARIABLE]) if environ.get(CONFIG_VARIABLE) else None)
    if path is not None:
        if not path.is_file():
            raise SettingsError(f"The settings file {path} does not exist.")
        return path
    data_dir = from_environment.get("data_dir")
    folders = [Path.cwd(), Path(data_dir[1]).expanduser() if data_dir else default_data_dir()]
    # A data folder that belongs to another user cannot be read, and has no settings for this process.
    return next((path for path in (folder / CONFIG_FILE_NAME for folder in folders) if os.access(path, os.R_OK)), None)


def _file_values(path: Path | None, declared: Mapping[str, Declaration]) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(f"The settings file {path} cannot be read: {error}.") from error
    for name in REMOVED & values.keys():
        _log.warning("'%s' in %s does nothing any more; take it out.", name, path)
        del values[name]
    for name in values:
        if name not in declared:
            raise SettingsError(f"'{name}' in {path} is not a setting{_suggest_name(name, list(declared))}")
    return values


def _parse_value(declaration: Declaration, raw: object, *, label: str) -> Any:
    try:
        return declaration.kind.parse(raw)
    except ValueError as error:
        not_value = "" if declaration.kind.is_secret else f", not {raw!r}"
        raise SettingsError(f"{label} {error}{not_value}.") from None


def _suggest_name(name: str, candidates: list[str]) -> str:
    close = difflib.get_close_matches(name, candidates, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else "; `regulars config` lists them all."


def _format_default(field: "dataclasses.Field[Any]", declaration: Declaration) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return str(field.default_factory())
    return _format_value(field.default, declaration)


def _format_value(value: object, declaration: Declaration) -> str:
    if value is None or value == ():
        return ""
    if isinstance(value, tuple):
        return ",".join(str(item) for item in value)
    if declaration.kind is kinds.SECRET:
        return MASK
    return masked_url(str(value)) if declaration.kind.is_secret else str(value)
