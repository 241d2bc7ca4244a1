"""The fields of a store as they are sent, stored and returned, and how an upsert changes a store."""

from datetime import datetime
from typing import Annotated, Final, NamedTuple
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from regulars.kit.arrays import Jsons, Texts
from regulars.kit.columns import Columns
from regulars.kit.errors import ApiError, invalid
from regulars.kit.wire import ExternalIdIn, Text, Timestamp
from regulars.work.personal import PersonalData

# The officially assigned codes of ISO 3166-1 alpha-2.
_CODES = """
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ
    CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO
    FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE
    JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO
    MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW
    PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM
    TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
"""

COUNTRY_CODES = frozenset(_CODES.split())
COUNTRY_CODE_CHARACTERS = 2

RequiredText = Annotated[Text, Meta(min_length=1)]


class StoreNotFound(ApiError):
    status, code, title = 404, "STORE_NOT_FOUND", "No such store"
    cause = "No store of your organization has this `external_id` or `store_` id. Stores are never created by a sale."
    fix = "Send the store with `POST /v1/stores` first."
    retry = "Yes, after the store exists, with a new Idempotency-Key."


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


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """An address. It is stored as JSON with its fields in this order, which is the order in the specification."""

    address_line1: str
    postal_code: str
    locality: str
    country_code: str
    address_line2: str | None = None
    administrative_area1: str | None = None
    administrative_area2: str | None = None


class AddressOut(msgspec.Struct):
    address_line1: str
    postal_code: str
    locality: str
    country_code: str
    address_line2: str | None
    administrative_area1: str | None
    administrative_area2: str | None


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


class StoreOut(msgspec.Struct):
    id: Annotated[str, Meta(description="The canonical id.", examples=["store_01jkv5q8z3f7r9t2x4b6d8h0ma"])]
    external_id: Annotated[str, Meta(examples=["PARIS-01"])]
    name: str | None
    address: AddressOut | None
    created_at: Timestamp
    updated_at: Annotated[Timestamp, Meta(description="Moves only when a write changes something.")]


# The columns that an upsert changes.
CHANGEABLE: Final = Columns(name=Texts, address=Jsons)


class Store(msgspec.Struct, frozen=True):
    id: UUID
    external_id: str
    name: str | None
    address: Address | None
    created_at: datetime
    updated_at: datetime

    @property
    def display_name(self) -> str:
        """The name, or the code of a store without one."""
        return self.name or self.external_id


class ListedStore(NamedTuple):
    """A store and its sort key in a list (`position`); in a list by name, the key has the name in the form that the
    database compares."""

    store: Store
    position: tuple[str, ...]


class StoreRef(msgspec.Struct, frozen=True):
    """The two ids of a store, for other modules."""

    id: UUID
    external_id: str


class StoreUpsert(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a store that a caller sent: an unset field does not change, None clears it.

    An address replaces the stored address as a whole.
    """

    external_id: str
    name: str | UnsetType | None = UNSET
    address: Address | UnsetType | None = UNSET
    # The unknown fields of the request body.
    ignored: tuple[str, ...] = ()


def apply(upsert: StoreUpsert, store: Store, *, now: datetime) -> Store:
    """Return the store after the upsert; the same object, with the same `updated_at`, if nothing changes."""
    sent = {name: value for name in CHANGEABLE.kinds if (value := getattr(upsert, name)) is not UNSET}
    if all(value == getattr(store, name) for name, value in sent.items()):
        return store
    # A transaction that began earlier may write later: `updated_at` never decreases.
    return msgspec.structs.replace(store, **sent, updated_at=max(now, store.updated_at))


def new_store(upsert: StoreUpsert, *, identifier: UUID, now: datetime) -> Store:
    """Return a new store as the upsert describes it."""
    return apply(upsert, Store(identifier, upsert.external_id, None, None, now, now), now=now)


PERSONAL_DATA: Final = PersonalData(not_personal={"stores": "about the retailer's stores"})
