"""Stream files of any length, with only one chunk in memory."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from regulars.web.static import NO_STORE, SECURITY_HEADERS


class Download(StreamingResponse):
    """A streamed file. When the client disconnects, the response ends after the current chunk and is not cancelled at
    once: cancelling a running SQL statement would close its database connection."""

    def __init__(self, chunks: AsyncGenerator[bytes], *, filename: str, media_type: str) -> None:
        headers = {
            **SECURITY_HEADERS,
            "Cache-Control": NO_STORE,
            "Content-Disposition": f'attachment; filename="{filename}"',
        }
        super().__init__(chunks, media_type=media_type, headers=headers)
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # as of any response
        disconnected = asyncio.create_task(self.listen_for_disconnect(receive))
        try:
            async with aclosing(self._chunks):
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                async for chunk in self._chunks:
                    if disconnected.done():
                        return
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                    # Lets the event loop send the chunk and handle other requests.
                    await asyncio.sleep(0)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            disconnected.cancel()
