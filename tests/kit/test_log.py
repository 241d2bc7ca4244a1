import io
import json
import logging
import sys
import threading

import pytest
import structlog

from regulars.kit import log
from regulars.kit.settings import Settings

KEY = "rgl_abcdefghijklmnopqrstuvwxyz0123456789"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _logging_as_it_was():
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def lines(stream: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_lines_are_json_without_a_terminal():
    stream = io.StringIO()
    log.configure(Settings(), stream=stream)
    log.get("regulars.sales").info("sales.recorded", count=3)
    (line,) = lines(stream)
    assert (line["event"], line["count"], line["level"], line["logger"]) == (
        "sales.recorded",
        3,
        "info",
        "regulars.sales",
    )
    assert line["timestamp"].endswith("Z")


def test_lines_are_readable_on_a_terminal():
    stream = Terminal()
    log.configure(Settings(), stream=stream)
    log.get("regulars.sales").info("sales.recorded", count=3)
    assert not stream.getvalue().startswith("{")
    assert "sales.recorded" in stream.getvalue()


@pytest.mark.parametrize("name", sorted(log.SENSITIVE_NAMES))
def test_values_of_sensitive_names_are_dropped(name):
    stream = io.StringIO()
    log.configure(Settings(), stream=stream)
    log.get("a").info("event", **{name: "planted"}, nested={name.upper().replace("_", "-"): ["planted"]})
    assert "planted" not in stream.getvalue()


@pytest.mark.parametrize(
    "secret", [KEY, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "+33612345678", "postgresql://user:hunter2@host/db"]
)
@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_secrets_inside_texts_and_tracebacks_are_scrubbed(secret, stream):
    written = stream()
    log.configure(Settings(), stream=written)
    log.get("a").warning(f"told {secret}", detail=[{"x": f"about {secret}"}])
    logging.getLogger("some.library").error("says %s", secret)
    try:
        raise ValueError(secret)
    except ValueError:
        log.get("a").exception("failed")
    planted = "hunter2" if "hunter2" in secret else secret
    assert planted not in written.getvalue()
    assert "ValueError" in written.getvalue()


def test_a_service_logs_the_exceptions_that_nothing_can_catch(monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)

    class Failing:
        def __del__(self):
            raise ValueError("lost")

    stream = io.StringIO()
    monkeypatch.setattr(sys, "__stderr__", stream)
    log.configure(Settings(), stream=stream, is_service=True)
    Failing()
    logging.captureWarnings(capture=False)
    assert "ValueError: lost" in lines(stream)[0]["exception"]


def test_bytes_are_logged_as_their_length():
    stream = io.StringIO()
    log.configure(Settings(), stream=stream)
    log.get("a").info("event", raw=b"planted")
    assert lines(stream)[0]["raw"] == "[7 bytes]"


def test_the_access_log_of_the_server_is_silent():
    stream = io.StringIO()
    log.configure(Settings(), stream=stream)
    logging.getLogger("uvicorn.access").info("GET /v1/subscriptions?phone_number=0612345678")
    assert stream.getvalue() == ""


def test_the_level_is_respected():
    stream = io.StringIO()
    log.configure(Settings(log_level="warning"), stream=stream)
    log.get("a").info("quiet")
    log.get("a").warning("loud")
    assert [line["event"] for line in lines(stream)] == ["loud"]
