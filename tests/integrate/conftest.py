from tests.support.visitor import visitor_as

__all__ = ["visitor_as"]
