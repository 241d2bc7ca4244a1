"""From the bytes of a request, or of a line of a file, to a valid upsert of a profile."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from regulars.kit.ids import EXTERNAL_ID_CHARACTERS_MAX
from regulars.kit.json import STRING_CHARACTERS_MAX, decode
from regulars.kit.text import check_external_id
from regulars.profiles.model import (
    ATTRIBUTE_KEY_CHARACTERS_MAX,
    ATTRIBUTE_VALUE_CHARACTERS_MAX,
    ProfileUpsert,
    check_attributes,
    read_phone,
)

Text = Annotated[str, Meta(max_length=STRING_CHARACTERS_MAX)]
ATTRIBUTE_KEY_SCHEMA = {"minLength": 1, "maxLength": ATTRIBUTE_KEY_CHARACTERS_MAX}
AttributeIn = Annotated[str, Meta(extra_json_schema={"maxLength": ATTRIBUTE_VALUE_CHARACTERS_MAX})]
AttributesIn = Annotated[
    dict[str, AttributeIn | None],
    Meta(
        description="Merged into the attributes the profile has. null removes a key; numbers and booleans are sent as "
        "strings. An unknown key is registered with the type of its first value.",
        examples=[{"loyalty_tier": "gold", "newsletter": "true"}],
        extra_json_schema={"propertyNames": ATTRIBUTE_KEY_SCHEMA},
    ),
]


class ProfileIn(msgspec.Struct):
    """A profile to create or update. A field left out is unchanged, null clears it."""

    external_id: Annotated[
        str,
        Meta(
            description="Your own id of the customer. It must not start with `prof_`, `sub_`, `store_` or `evt_`.",
            examples=["CUST-1042"],
            extra_json_schema={"minLength": 1, "maxLength": EXTERNAL_ID_CHARACTERS_MAX, "format": "external-id"},
        ),
    ]
    phone_number: Annotated[
        Text | UnsetType | None,
        Meta(
            description="Kept in E.164 where it can be read, otherwise as sent. It gives no consent to text messages.",
            examples=["+33612345678"],
        ),
    ] = UNSET
    first_name: Annotated[Text | UnsetType | None, Meta(examples=["Ada"])] = UNSET
    last_name: Annotated[Text | UnsetType | None, Meta(examples=["Martin"])] = UNSET
    attributes: AttributesIn | UnsetType | None = UNSET


_decoder = msgspec.json.Decoder(ProfileIn)


def decode_profile(body: bytes, *, default_country: str | None, is_checked: bool = False) -> ProfileUpsert:
    """Decode and validate one profile, or raise the refusal it deserves."""
    sent = decode(_decoder, body, is_checked=is_checked)
    phone_number, attributes = sent.phone_number, sent.attributes
    return ProfileUpsert(
        external_id=check_external_id(sent.external_id),
        phone=read_phone(phone_number, default_country=default_country)
        if isinstance(phone_number, str)
        else phone_number,
        first_name=sent.first_name,
        last_name=sent.last_name,
        attributes=check_attributes(attributes) if isinstance(attributes, dict) else {},
    )
