"""The route table as the server has it, for tests that must cover all of it."""

from regulars.kit.settings import Settings
from regulars.server import api_routes

ROUTES = api_routes(Settings())
