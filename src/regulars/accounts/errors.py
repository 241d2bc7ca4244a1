"""The errors about user accounts; each message is a sentence for the user."""

from datetime import datetime


class AccountRefusal(Exception):
    """A request about an account is refused; the message says what is wrong and how to fix it."""


class LinkUnusable(AccountRefusal):
    def __init__(self) -> None:
        super().__init__("This link has been used, has expired or does not exist; ask for a new one.")


class LastOwner(AccountRefusal):
    def __init__(self) -> None:
        super().__init__("An organization needs at least one owner: make another member an owner first.")


class OwnersOnly(AccountRefusal):
    def __init__(self) -> None:
        super().__init__("Only an owner can change an owner or make a member an owner.")


class ResetByOperatorOnly(AccountRefusal):
    def __init__(self, email: str) -> None:
        super().__init__(
            f"This user is a member of other organizations too, so the link must be created on the server:"
            f" `regulars user link {email}`."
        )


class NoSuchMember(AccountRefusal):
    def __init__(self) -> None:
        super().__init__("There is no such member; the list may have changed.")


class AlreadyMember(AccountRefusal):
    def __init__(self, email: str) -> None:
        super().__init__(f"{email} is a member already; change their role in the list.")


class NoSuchUser(AccountRefusal):
    def __init__(self, email: str) -> None:
        super().__init__(f"There is no user {email}; `regulars user list` shows them all.")


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
