"""Answer the request with which a process of this server finds out whether an address leads to it."""

from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from regulars.accounts.model import hash_token
from regulars.accounts.server_address import CHECK_PATH
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.organizations.public_address import READ_S_MAX, find_answer

NONCE_CHARACTERS_MAX: Final = 64
NOT_STORED: Final = {"cache-control": "no-store"}


class AddressCheck:
    def __init__(self, database: Database) -> None:
        self._database = database

    def routes(self) -> list[Route]:
        return [Route(f"{CHECK_PATH}/{{nonce}}", self._answer, methods=["GET"])]

    async def _answer(self, request: Request) -> Response:
        nonce: str = request.path_params["nonce"]
        answer = None
        if len(nonce) <= NONCE_CHARACTERS_MAX:
            try:
                async with self._database.reading(until=monotonic() + READ_S_MAX) as tx:
                    answer = await find_answer(tx, hash_token(nonce))
            except CONNECTION_ERRORS:
                headers = {**NOT_STORED, "retry-after": "5"}
                return PlainTextResponse("The database cannot be reached.\n", 503, headers=headers)
        if answer is None:
            return PlainTextResponse("There is no such check.\n", 404, headers=NOT_STORED)
        return PlainTextResponse(answer, headers=NOT_STORED)
