"""Compress responses with lists and decompress bodies of batch requests, with gzip.

Large bodies are processed in a thread, because zlib releases the interpreter lock meanwhile.
"""

import asyncio
import re
import zlib
from typing import Final

from regulars.http.body import too_large
from regulars.http.large_bodies import LARGE_BYTES
from regulars.http.request import ApiResponse
from regulars.http.route import ReadRoute, Route
from regulars.kit.errors import InvalidJson

# A smaller response fits into one or two packets, so it is not compressed.
COMPRESSED_BYTES_MIN: Final = 1_400
MEMBERS_MAX: Final = 100
# The fastest level; other levels save a tenth more and take several times as long.
_LEVEL: Final = 1
_WITH_GZIP_HEADER: Final = 16 + zlib.MAX_WBITS
_ENCODING: Final = (b"content-encoding", b"gzip")
_VARY: Final = (b"vary", b"accept-encoding")
_GZIP = re.compile(rb"(?:^|,)[ \t]*(?:x-)?gzip[ \t]*(?:;[ \t]*q=([0-9.]+)[ \t]*)?(?=,|$)", re.IGNORECASE)


def accepts_gzip(accept_encoding: bytes) -> bool:
    """Whether the header names gzip, with a weight above zero."""
    gzip = _GZIP.search(accept_encoding)
    return gzip is not None and (gzip[1] or b"1").strip(b"0.") != b""


def is_list(route: Route) -> bool:
    """Whether the route returns pages of a list, whose responses are large."""
    return isinstance(route, ReadRoute) and any(parameter.name == "limit" for parameter in route.parameters)


async def compress_list(response: ApiResponse, *, is_accepted: bool) -> ApiResponse:
    """Compress the page of a list if the caller accepts gzip; `Vary` says that this depends on `Accept-Encoding`."""
    if not is_accepted or len(response.body) < COMPRESSED_BYTES_MIN:
        return ApiResponse(response.status, response.body, (*response.headers, _VARY))
    if len(response.body) > LARGE_BYTES:
        body = await asyncio.to_thread(_compress, response.body)
    else:
        body = _compress(response.body)
    return ApiResponse(response.status, body, (*response.headers, _VARY, _ENCODING))


def _compress(body: bytes) -> bytes:
    return zlib.compress(body, _LEVEL, wbits=_WITH_GZIP_HEADER)


async def decompress(body: bytes, *, bytes_max: int) -> bytes:
    """Return the decompressed body; raise if it is not gzip or too large."""
    return await asyncio.to_thread(_decompress, body, bytes_max)


def _decompress(body: bytes, bytes_max: int) -> bytes:
    pieces: list[bytes] = []
    bytes_left = bytes_max
    unread = body
    try:
        # A gzip stream may have several members. Each costs a copy of the bytes after it, so a body of very many empty
        # members would take minutes.
        while unread or not pieces:
            if len(pieces) == MEMBERS_MAX:
                raise InvalidJson(f"The body has more than {MEMBERS_MAX} gzip members; send one.")
            member = zlib.decompressobj(wbits=_WITH_GZIP_HEADER)
            # One byte more than allowed, to find out whether the body is too large.
            pieces.append(member.decompress(unread, bytes_left + 1))
            bytes_left -= len(pieces[-1])
            if bytes_left < 0:
                raise too_large(bytes_max)
            if not member.eof:
                raise InvalidJson("The body is cut off: its gzip stream does not end.")
            unread = member.unused_data
    except zlib.error as error:
        raise InvalidJson(f"The body is said to be gzip and is not: {error}.") from None
    return b"".join(pieces)
