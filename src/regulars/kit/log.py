"""Configure logging: events with named values on stderr, readable on a terminal and as JSON everywhere else.

Log lines have ids, counts and times, and no personal data: `redact` replaces values with sensitive names, and `scrub`
removes keys, passwords and phone numbers from any text, so that a library's traceback cannot leak them either. With
JSON every line of a server or worker is a JSON object.
"""

import logging
import re
import sys
import threading
from collections.abc import Mapping, MutableMapping
from typing import Any, Final, TextIO

import structlog

from regulars.kit.settings import Settings, SettingsError, load

REDACTED: Final = "[redacted]"
SENSITIVE_NAMES: Final = frozenset(
    {
        "address",
        "api_key",
        "attributes",
        "authorization",
        "body",
        "consent_proof",
        "cookie",
        "database_url",
        "email",
        "first_name",
        "idempotency_key",
        "key",
        "last_name",
        "password",
        "payload",
        "phone",
        "phone_number",
        "secret",
        "set_cookie",
        "signature",
        "source_text",
        "token",
        "x_api_key",
    }
)
REDACT_DEPTH_MAX: Final = 6
# PostgreSQL's error messages quote the values of a row in these lines.
_DETAILS: Final = re.compile(r"^(?:DETAIL|CONTEXT):.*$\n?", re.MULTILINE)
# An API key, a webhook secret, the password of a database address, and a phone number in E.164 form.
_SECRETS: Final = re.compile(
    r"rgl_[0-9A-Za-z]{8,}|whsec_[0-9A-Za-z+/=]{8,}|(?<=://)[^/@\s:]*:[^/@\s]+(?=@)|\+[1-9][0-9]{6,14}\b"
)
# Uvicorn's access log would repeat our own request log, with query strings and phone numbers in them.
_SILENCED: Final = ("uvicorn.access",)
_ROUTED: Final = ("uvicorn", "uvicorn.error", "uvicorn.asgi", "psycopg")

Event = MutableMapping[str, Any]


class _ServiceHandler(logging.StreamHandler[TextIO]):
    """Writes the log of a service as JSON; its presence says that no other line may be written to the stream."""


def load_for_service() -> Settings:
    """Load the settings and configure the log of a server or worker; a mistake in the settings is a line of it too."""
    try:
        settings = load()
    except SettingsError:
        configure(Settings(), is_service=True)
        raise
    configure(settings, is_service=True)
    return settings


def configure(settings: Settings, *, stream: TextIO | None = None, is_service: bool = False) -> None:
    """Route structlog and the standard library's loggers into one stream; call at the start of a process.

    `is_service` is true for servers and workers: their stream is a log, so with JSON it has no other lines. Commands
    speak to a person or a script.
    """
    stream = sys.stderr if stream is None else stream
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    as_json = settings.log_format == "json" or (settings.log_format == "auto" and not stream.isatty())
    shared: list[structlog.types.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*shared, _drop_color_message],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            redact,
            *_rendering_processors(as_json=as_json, colors=stream.isatty()),
        ],
    )
    handler = _ServiceHandler(stream) if as_json and is_service else logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in (*_ROUTED, *_SILENCED):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = name not in _SILENCED
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    if as_json and is_service and stream is sys.__stderr__:
        _log_what_python_prints()


def writes_json() -> bool:
    """Whether this process is a service that writes its log as JSON; then it writes no plain lines."""
    return any(isinstance(handler, _ServiceHandler) for handler in logging.getLogger().handlers)


def _log_what_python_prints() -> None:
    """Log warnings, and exceptions that end a thread or that nothing can catch, in place of Python's plain lines."""
    logging.captureWarnings(capture=True)

    def log_exception(arguments: threading.ExceptHookArgs) -> None:
        get(__name__).error("thread.failed", exc_info=arguments.exc_value)

    def log_uncaught(arguments: "sys.UnraisableHookArgs") -> None:
        get(__name__).error("exception.ignored", where=arguments.err_msg, exc_info=arguments.exc_value)

    threading.excepthook = log_exception
    sys.unraisablehook = log_uncaught


def get(name: str) -> structlog.typing.FilteringBoundLogger:
    """Return the logger of a module. In `logger.info("event.name", count=1)`, keywords are the values of the event."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(name)
    return logger


def redact(_logger: object, _method: str, event: Event) -> Event:
    """Replace values of known sensitive names, at any depth, and secrets inside texts."""
    for name, value in event.items():
        event[name] = _redacted(name, value, REDACT_DEPTH_MAX)
    return event


def scrub(text: str) -> str:
    """Remove keys, secrets, passwords and phone numbers from the text."""
    return _DETAILS.sub("", _SECRETS.sub(REDACTED, text))


def _redacted(name: str, value: object, depth: int) -> object:
    if name.lower().replace("-", "_") in SENSITIVE_NAMES and value is not None:
        return REDACTED
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, bytes):
        return f"[{len(value)} bytes]"
    if depth == 0:
        return REDACTED
    if isinstance(value, Mapping):
        return {str(member): _redacted(str(member), item, depth - 1) for member, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted("", item, depth - 1) for item in value]
    return value


def _rendering_processors(*, as_json: bool, colors: bool) -> list[structlog.types.Processor]:
    # Tracebacks become text before the last redaction, because their lines may quote a request.
    if as_json:
        return [structlog.processors.format_exc_info, redact, structlog.processors.JSONRenderer(default=str)]
    renderer = structlog.dev.ConsoleRenderer(
        colors=colors, pad_event_to=30, exception_formatter=structlog.dev.plain_traceback
    )
    return [structlog.processors.format_exc_info, redact, renderer]


def _drop_color_message(_logger: object, _method: str, event: Event) -> Event:
    """Remove the second copy of each message, with terminal colours, that uvicorn adds."""
    event.pop("color_message", None)
    return event
