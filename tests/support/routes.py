"""The route table of the server, for tests that must cover all routes."""

from regulars.kit.settings import Settings
from regulars.server import api_routes

ROUTES = api_routes(Settings())
