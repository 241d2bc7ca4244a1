"""What an attempt that failed leaves in the log: a traceback for a mistake of ours, a line for what was in the way."""

import psycopg
import pytest
from psycopg.errors import LockNotAvailable
from structlog.testing import capture_logs

from regulars.kit.ids import new_uuid
from regulars.work.queue import log_failure


@pytest.mark.parametrize("error", [LockNotAvailable("a row is held"), psycopg.OperationalError("it is away")])
def test_a_row_that_is_held_and_a_database_that_is_away_leave_no_traceback(error):
    with capture_logs() as lines:
        log_failure("outbox", new_uuid(), error, attempts=1, is_parked=False, listener="journeys.hear_messages")
    [line] = lines
    assert line["event"] == "outbox.postponed"
    assert line["error"] == type(error).__name__
    assert line["listener"] == "journeys.hear_messages"
    assert "exc_info" not in line


@pytest.mark.parametrize(
    ("error", "is_parked", "event"),
    [
        (ValueError("ours"), False, "outbox.postponed"),
        (ValueError("ours"), True, "outbox.parked"),
        (LockNotAvailable("a row is held"), True, "outbox.parked"),
    ],
)
def test_a_mistake_of_ours_and_whatever_is_given_up_are_logged_with_their_exception(error, is_parked, event):
    with capture_logs() as lines:
        log_failure("outbox", new_uuid(), error, attempts=3, is_parked=is_parked)
    [line] = lines
    assert (line["event"], line["exc_info"], line["attempts"]) == (event, error, 3)
