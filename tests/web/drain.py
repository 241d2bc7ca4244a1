"""Reading a streamed answer to its end."""

from starlette.responses import Response, StreamingResponse


async def drained(response: Response) -> list[str]:
    assert isinstance(response, StreamingResponse)
    return [chunk if isinstance(chunk, str) else bytes(chunk).decode() async for chunk in response.body_iterator]
