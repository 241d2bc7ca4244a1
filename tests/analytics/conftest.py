from tests.support.analysis import analysis
from tests.support.browser import chromium
from tests.support.visitor import visitor_as

__all__ = ["analysis", "chromium", "visitor_as"]
