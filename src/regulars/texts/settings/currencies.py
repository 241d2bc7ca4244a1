"""Known currencies, apart from the settings, because commands that only read settings start without Babel."""

from babel import Locale


def is_currency(code: str) -> bool:
    """Whether this is the code of a currency, such as EUR."""
    return code in Locale("en").currencies
