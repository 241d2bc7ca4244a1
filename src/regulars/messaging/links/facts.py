"""The fact that other rooms listen to when a person clicks on the link of their own text."""

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from regulars.work.facts import Fact


class LinkClicked(Fact, frozen=True):
    """The clicks of a person on the personal link of a text changed: one came, or one proved to be of a machine."""

    topic: ClassVar[str] = "messaging.link_clicked"
    on_interest: ClassVar[bool] = True

    profile_id: UUID
    text_id: UUID
    # The start of the minute of the click.
    at: datetime
