"""What accounts refuse; each is a sentence for the person who asked."""

from datetime import datetime


class AccountRefusal(Exception):
    """The message says what is wrong and what to do."""


class LinkUnusable(AccountRefusal):
    def __init__(self) -> None:
        super().__init__("This link was used, has expired or was never given out; ask for a new one.")


class LastOwner(AccountRefusal):
    def __init__(self) -> None:
        super().__init__("An organization keeps at least one owner: make somebody else an owner first.")


class NotYours(AccountRefusal):
    def __init__(self) -> None:
        super().__init__("Only an owner can change an owner or make somebody one.")


class ResetElsewhere(AccountRefusal):
    def __init__(self, email: str) -> None:
        super().__init__(
            f"This person is a member of other organizations too, so their link is made on the server:"
            f" `regulars user link {email}`."
        )


class NoSuchMember(AccountRefusal):
    def __init__(self) -> None:
        super().__init__("There is no such member; the list may have changed in between.")


class AlreadyMember(AccountRefusal):
    def __init__(self, email: str) -> None:
        super().__init__(f"{email} is a member already; change the role in the list.")


class NoSuchUser(AccountRefusal):
    def __init__(self, email: str) -> None:
        super().__init__(f"There is no user {email}; `regulars user list` shows them all.")


class WrongCode(AccountRefusal):
    def __init__(self) -> None:
        super().__init__("The code is not right; each works once, for about a minute.")


class FactorIsOn(AccountRefusal):
    def __init__(self) -> None:
        super().__init__("The second factor is on already; turn it off first, with a code.")


class TooManyAttempts(AccountRefusal):
    """Passwords or codes were wrong too often from here, or for this account."""

    def __init__(self, wait_until: datetime, *, now: datetime) -> None:
        self.wait_s = max(1, int((wait_until - now).total_seconds()))
        super().__init__(f"Too many tries. Wait {max(1, round(self.wait_s / 60))} min, or ask for a one-time link.")
