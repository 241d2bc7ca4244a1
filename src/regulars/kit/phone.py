"""Check quickly whether a phone number is already in the international form (E.164).

Nearly all numbers arrive in this form, and the library `phonenumbers` applies a dozen patterns even to them. It is
enough to check the possible lengths of the country's numbers and its national prefix.
"""

import re
from functools import cache
from typing import NamedTuple

import phonenumbers

COUNTRY_CODE_DIGITS_MAX = 3
_PLUS_AND_DIGITS = re.compile(r"\+[1-9][0-9]{6,14}")


def is_e164(text: str) -> bool:
    """Return True only if a full parse would return the same string, and the area code is not missing. After False, the
    caller must parse the number."""
    if _PLUS_AND_DIGITS.fullmatch(text) is None:
        return False
    for end in range(2, COUNTRY_CODE_DIGITS_MAX + 2):
        country = _find_country(text[1:end])
        if country is not None:
            national = text[end:]
            prefix = country.national_prefix
            has_prefix = national.startswith("0") or (prefix is not None and prefix.match(national) is not None)
            return len(national) in country.lengths and not has_prefix
    return False


class _Country(NamedTuple):
    lengths: frozenset[int]
    # The national prefix, which is dialled inside the country and is not part of the number.
    national_prefix: re.Pattern[str] | None


@cache
def _find_country(code: str) -> _Country | None:
    regions = phonenumbers.COUNTRY_CODE_TO_REGION_CODE.get(int(code))
    if regions is None:
        return None
    metadata = phonenumbers.PhoneMetadata.metadata_for_region_or_calling_code(int(code), regions[0])
    if metadata is None or metadata.general_desc is None:
        return _Country(frozenset(), None)
    prefix = metadata.national_prefix_for_parsing
    return _Country(frozenset(metadata.general_desc.possible_length), re.compile(prefix) if prefix else None)
