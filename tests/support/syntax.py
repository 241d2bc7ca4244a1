"""Reading Python, for the tests that read the source."""

import ast


def parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SystemError:
        # Python before 3.11.5 miscounts its own depth now and then ("AST constructor recursion depth mismatch").
        return ast.parse(source)
