"""What cannot be taken is refused before anything is done for it."""

import pytest
from tests.http.workshop import Workshop

from regulars.kit.errors import ApiError

pytestmark = pytest.mark.anyio


async def test_a_write_that_no_queue_would_take_is_refused_unread(database, organization_id, monkeypatch):
    workshop = Workshop(database, organization_id)
    monkeypatch.setattr(workshop.writes.in_flight.coalescer, "has_room", lambda _queue, *, size: size > 100)
    # The body is invalid, and is not read: that would be another refusal.
    refused = await workshop.call(7)
    assert isinstance(refused, ApiError)
    assert (refused.status, refused.code) == (503, "UNAVAILABLE")
    assert "Too much is waiting" in refused.detail
    assert dict(refused.headers)[b"retry-after"]
    assert workshop.batches == []
