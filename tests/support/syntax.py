"""Parses Python source, for tests that check the source."""

import ast


def parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SystemError:
        # Python before 3.11.5 sometimes fails ("AST constructor recursion depth mismatch"); a second attempt succeeds.
        return ast.parse(source)
