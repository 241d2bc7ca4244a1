"""Decode a store to create or update, from the JSON body of a request or of a line of an imported file."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from regulars.kit.body_reader import Reader
from regulars.kit.errors import invalid
from regulars.kit.text import check_external_id
from regulars.kit.wire import ExternalIdIn, Text
from regulars.stores.model import COUNTRY_CODES, Address, StoreUpsert

COUNTRY_CODE_CHARACTERS = 2

RequiredText = Annotated[Text, Meta(min_length=1)]


def read_country_code(text: str, *, field: str) -> str:
    # `upper` turns some letters of other alphabets into Latin ones, so the original must be ASCII too.
    country_code = text.upper()
    if not text.isascii() or country_code not in COUNTRY_CODES:
        raise invalid(field, "NOT_ALLOWED", "It must be an assigned code of ISO 3166-1 alpha-2, such as FR.")
    return country_code


class AddressIn(msgspec.Struct):
    """Where the store is. An address replaces the one before as a whole."""

    address_line1: Annotated[RequiredText, Meta(examples=["12 rue de la Paix"])]
    postal_code: Annotated[RequiredText, Meta(examples=["75002"])]
    locality: Annotated[RequiredText, Meta(examples=["Paris"])]
    country_code: Annotated[
        str,
        Meta(
            description="An assigned code of ISO 3166-1 alpha-2, stored in capitals.",
            examples=["FR"],
            extra={"check": read_country_code},
            extra_json_schema={
                "minLength": COUNTRY_CODE_CHARACTERS,
                "maxLength": COUNTRY_CODE_CHARACTERS,
                "format": "country-code",
            },
        ),
    ]
    address_line2: Annotated[Text | None, Meta(description="Building, floor or suite.")] = None
    administrative_area1: Annotated[Text | None, Meta(description="Region.")] = None
    administrative_area2: Annotated[Text | None, Meta(description="Department or county.")] = None


class StoreIn(msgspec.Struct):
    """A store to create or update. A field left out is unchanged, null clears it."""

    external_id: Annotated[
        ExternalIdIn,
        Meta(
            description="Your own code of the store. It must not start with `prof_`, `sub_`, `store_` or `evt_`.",
            examples=["PARIS-01"],
        ),
    ]
    name: Annotated[Text | UnsetType | None, Meta(examples=["Paris Opéra"])] = UNSET
    address: AddressIn | UnsetType | None = UNSET


_stores: Reader[StoreIn] = Reader(StoreIn)


def decode_store(body: bytes) -> StoreUpsert:
    """Decode and validate one store, or raise an `ApiError`."""
    return _stores.read(body, _upsert)


def _upsert(sent: StoreIn, ignored: tuple[str, ...]) -> StoreUpsert:
    return StoreUpsert(
        external_id=check_external_id(sent.external_id),
        name=sent.name,
        address=_read_address(sent.address) if isinstance(sent.address, AddressIn) else sent.address,
        ignored=ignored,
    )


def _read_address(sent: AddressIn) -> Address:
    country_code = read_country_code(sent.country_code, field="address.country_code")
    return Address(**{**msgspec.structs.asdict(sent), "country_code": country_code})
