"""The kinds of settings, such as whole numbers and URLs: how each parses its value and is described to users.

Each `parse` raises ValueError with the end of a sentence that begins with the setting's name: "must be …".
"""

import dataclasses
import ipaddress
import re
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

SECRET_CHARACTERS_MIN: Final = 32


@dataclasses.dataclass(frozen=True, kw_only=True)
class SettingKind:
    name: str
    parse: Callable[[Any], Any]
    unit: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    is_secret: bool = False


def whole_number(minimum: int, maximum: int, *, unit: str | None = None) -> SettingKind:
    def parse(value: object) -> int:
        if isinstance(value, str) and re.fullmatch(r"\s*-?[0-9]{1,18}\s*", value, re.ASCII):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
            raise ValueError(f"must be a whole number from {minimum} to {maximum}")
        return value

    return SettingKind(name="whole number", parse=parse, unit=unit, minimum=minimum, maximum=maximum)


def one_of(*allowed: str) -> SettingKind:
    def parse(value: object) -> str:
        text = nonblank(value).lower()
        if text not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return text

    return SettingKind(name=" | ".join(allowed), parse=parse)


def nonblank(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a text that is not empty")
    return value.strip()


def path(value: object) -> Path:
    return Path(nonblank(value)).expanduser().absolute()


def database_url(value: object) -> str:
    text = nonblank(value)
    if not text.startswith(("postgresql://", "postgres://")):
        raise ValueError("must be an address like postgresql://user:password@host:5432/database")
    return text


def public_url(value: object) -> str:
    text = nonblank(value).rstrip("/")
    try:
        parts = urllib.parse.urlsplit(text)
        is_valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_valid = False
        parts = urllib.parse.urlsplit("")
    if not is_valid or parts.query or parts.fragment or parts.username:
        raise ValueError("must be an address like https://regulars.example.com")
    return text


def networks(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else str(value).split(",")
    names = tuple(str(item).strip() for item in items if str(item).strip())
    for name in names:
        try:
            ipaddress.ip_network(name, strict=False)
        except ValueError:
            raise ValueError(f"must list IP addresses or networks, and '{name}' is neither") from None
    return names


def country(value: object) -> str:
    text = nonblank(value).upper()
    if not re.fullmatch(r"[A-Z]{2}", text):
        raise ValueError("must be a two-letter country code such as FR")
    return text


def secret(value: object) -> str:
    text = nonblank(value)
    if len(text) < SECRET_CHARACTERS_MIN:
        raise ValueError(
            f"must have at least {SECRET_CHARACTERS_MIN} characters, such as `openssl rand -base64 32` gives"
        )
    return text


TEXT: Final = SettingKind(name="text", parse=nonblank)
FOLDER: Final = SettingKind(name="folder", parse=path)
FILE: Final = SettingKind(name="file", parse=path)
DATABASE_URL: Final = SettingKind(name="address", parse=database_url, is_secret=True)
PUBLIC_URL: Final = SettingKind(name="address", parse=public_url)
NETWORKS: Final = SettingKind(name="list of networks", parse=networks)
COUNTRY: Final = SettingKind(name="country code", parse=country)
SECRET: Final = SettingKind(name="secret text", parse=secret, is_secret=True)
