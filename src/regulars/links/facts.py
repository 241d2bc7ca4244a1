"""Publish clicks on links to listeners in other rooms."""

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from regulars.work.facts import Fact


class LinkClicked(Fact, frozen=True):
    """The clicks of a customer on a personal link changed: a click is new, or was reclassified as a machine's."""

    topic: ClassVar[str] = "messaging.link_clicked"
    on_interest: ClassVar[bool] = True

    profile_id: UUID
    text_id: UUID
    # The start of the minute of the click.
    at: datetime
