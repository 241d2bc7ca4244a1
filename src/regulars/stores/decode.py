"""Decode a store to create or update, from the JSON body of a request or of a line of an imported file."""

import msgspec

from regulars.kit.body_reader import Reader
from regulars.kit.text import check_external_id
from regulars.stores.model import Address, AddressIn, StoreIn, StoreUpsert, read_country_code

_stores: Reader[StoreIn] = Reader(StoreIn)


def decode_store(body: bytes) -> StoreUpsert:
    """Decode and validate one store, or raise an `ApiError`."""
    return _stores.read(body, _upsert)


def _upsert(sent: StoreIn, ignored: tuple[str, ...]) -> StoreUpsert:
    fields = {**msgspec.structs.asdict(sent), "external_id": check_external_id(sent.external_id)}
    if isinstance(sent.address, AddressIn):
        fields["address"] = _read_address(sent.address)
    return StoreUpsert(**fields, ignored=ignored)


def _read_address(sent: AddressIn) -> Address:
    country_code = read_country_code(sent.country_code, field="address.country_code")
    return Address(**{**msgspec.structs.asdict(sent), "country_code": country_code})
