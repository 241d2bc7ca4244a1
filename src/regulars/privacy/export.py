"""Export everything that is stored about one person as one JSON document, for their right of access."""

from collections.abc import AsyncGenerator
from uuid import UUID

import msgspec

from regulars.kit.clock import format_timestamp
from regulars.kit.db import Database
from regulars.privacy.personal import MODULES
from regulars.profiles.model import Profile
from regulars.profiles.wire import to_profile_out
from regulars.work.personal import DataSubject


async def export_person(
    database: Database, organization_id: UUID, profile: Profile, *, secret: bytes
) -> AsyncGenerator[bytes]:
    """Stream the document, so that only one page of a person's tickets is in memory."""
    person = DataSubject(organization_id=organization_id, profile_id=profile.id, secret=secret)
    async with database.reading() as tx:
        now = tx.now
    yield b'{"exported_at":' + msgspec.json.encode(format_timestamp(now))
    # The attributes in their stored order.
    shown = msgspec.structs.replace(to_profile_out(profile), attributes=profile.attributes)
    yield b',"profile":' + msgspec.json.encode(shown)
    for module in MODULES.values():
        for name, export in module.exports.items():
            yield b"," + msgspec.json.encode(name) + b":["
            async for piece in export(database, person):
                yield piece
            yield b"]"
    yield b"}\n"
