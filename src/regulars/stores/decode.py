"""From the bytes of a request, or of a line of a file, to a valid upsert of a store."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from regulars.kit.errors import invalid
from regulars.kit.ids import EXTERNAL_ID_CHARACTERS_MAX
from regulars.kit.json import STRING_CHARACTERS_MAX, decode
from regulars.kit.text import check_external_id
from regulars.stores.countries import COUNTRY_CODES
from regulars.stores.model import Address, StoreUpsert

COUNTRY_CODE_CHARACTERS = 2

Text = Annotated[str, Meta(max_length=STRING_CHARACTERS_MAX)]
RequiredText = Annotated[str, Meta(min_length=1, max_length=STRING_CHARACTERS_MAX)]


class AddressIn(msgspec.Struct):
    """Where the store is. An address replaces the one before as a whole."""

    address_line1: Annotated[RequiredText, Meta(examples=["12 rue de la Paix"])]
    postal_code: Annotated[RequiredText, Meta(examples=["75002"])]
    locality: Annotated[RequiredText, Meta(examples=["Paris"])]
    country_code: Annotated[
        str,
        Meta(
            min_length=COUNTRY_CODE_CHARACTERS,
            max_length=COUNTRY_CODE_CHARACTERS,
            description="An assigned code of ISO 3166-1 alpha-2, kept in capitals.",
            examples=["FR"],
            extra_json_schema={"format": "country-code"},
        ),
    ]
    address_line2: Annotated[Text | None, Meta(description="Building, floor or suite.")] = None
    administrative_area1: Annotated[Text | None, Meta(description="Region.")] = None
    administrative_area2: Annotated[Text | None, Meta(description="Department or county.")] = None


class StoreIn(msgspec.Struct):
    """A store to create or update. A field left out is unchanged, null clears it."""

    external_id: Annotated[
        str,
        Meta(
            description="Your own code of the store. It must not start with `prof_`, `sub_`, `store_` or `evt_`.",
            examples=["PARIS-01"],
            extra_json_schema={"minLength": 1, "maxLength": EXTERNAL_ID_CHARACTERS_MAX, "format": "external-id"},
        ),
    ]
    name: Annotated[Text | UnsetType | None, Meta(examples=["Paris Opéra"])] = UNSET
    address: AddressIn | UnsetType | None = UNSET


_decoder = msgspec.json.Decoder(StoreIn)


def decode_store(body: bytes) -> StoreUpsert:
    """Decode and validate one store, or raise the refusal it deserves."""
    sent = decode(_decoder, body)
    return StoreUpsert(
        external_id=check_external_id(sent.external_id),
        name=sent.name,
        address=_read_address(sent.address) if isinstance(sent.address, AddressIn) else sent.address,
    )


def _read_address(sent: AddressIn) -> Address:
    # Some letters of other alphabets become Latin ones when they are capitalised.
    country_code = sent.country_code.upper()
    if not sent.country_code.isascii() or country_code not in COUNTRY_CODES:
        raise invalid("address.country_code", "NOT_ALLOWED", "It is not an assigned code of ISO 3166-1 alpha-2.")
    return Address(**{**msgspec.structs.asdict(sent), "country_code": country_code})
