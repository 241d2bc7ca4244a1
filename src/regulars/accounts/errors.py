"""The errors about user accounts; each message is a sentence for the user."""

from datetime import datetime
from typing import ClassVar


class AccountRefusal(Exception):
    """A request about an account is refused; the message says what is wrong and how to fix it."""

    # `{}` is the email address of the user, where the error gets one.
    sentence: ClassVar[str]

    def __init__(self, *values: str) -> None:
        super().__init__(self.sentence.format(*values))


class LinkUnusable(AccountRefusal):
    sentence = "This link has been used, has expired or does not exist; ask for a new one."


class LastOwner(AccountRefusal):
    sentence = "An organization needs at least one owner: make another member an owner first."


class OwnersOnly(AccountRefusal):
    sentence = "Only an owner can change an owner or make a member an owner."


class ResetByOperatorOnly(AccountRefusal):
    sentence = (
        "This user is a member of other organizations too, so the link must be created on the server: `regulars user"
        " link {}`."
    )


class NoSuchMember(AccountRefusal):
    sentence = "There is no such member; the list may have changed."


class RoleTooLow(AccountRefusal):
    sentence = "{} needs another role to change journeys, campaigns and segments."


class AlreadyMember(AccountRefusal):
    sentence = "{} is a member already; change their role in the list."


class NoSuchUser(AccountRefusal):
    sentence = "There is no user {}; `regulars user list` shows them all."


class WrongCode(AccountRefusal):
    sentence = "The code is wrong; each code works once, for about a minute."


class FactorIsOn(AccountRefusal):
    sentence = "The second factor is on already; turn it off first."


class TooManyAttempts(AccountRefusal):
    """Too many wrong passwords or codes from this IP address, or for this account."""

    sentence = "Too many attempts. Wait {} min, or ask for a one-time link."

    def __init__(self, wait_until: datetime, *, now: datetime) -> None:
        self.wait_s = max(1, int((wait_until - now).total_seconds()))
        super().__init__(str(max(1, round(self.wait_s / 60))))
