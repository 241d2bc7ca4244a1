from tests.support.analysis import analysis
from tests.support.visitor import visitor_as

__all__ = ["analysis", "visitor_as"]
