"""The errors about user accounts; each message is a sentence for the user."""

from datetime import datetime

from regulars.kit.refusals import NotFound, Refused


class AccountRefusal(Refused):
    """A request about an account is refused; the message says what is wrong and how to fix it."""


class LinkUnusable(AccountRefusal):
    def __init__(self) -> None:
        super().__init__("This link has been used, has expired or does not exist; ask for a new one.")


class NoSuchMember(AccountRefusal, NotFound):
    def __init__(self) -> None:
        super().__init__("There is no such member; the list may have changed.")


class WrongCode(AccountRefusal):
    def __init__(self) -> None:
        super().__init__("The code is wrong; each code works once, for about a minute.")


class FactorIsOn(AccountRefusal):
    def __init__(self) -> None:
        super().__init__("The second factor is on already; turn it off first.")


class TooManyAttempts(AccountRefusal):
    """Too many wrong passwords or codes from this IP address, or for this account."""

    def __init__(self, wait_until: datetime, *, now: datetime) -> None:
        self.wait_s = max(1, int((wait_until - now).total_seconds()))
        super().__init__(f"Too many attempts. Wait {max(1, round(self.wait_s / 60))} min, or ask for a one-time link.")
