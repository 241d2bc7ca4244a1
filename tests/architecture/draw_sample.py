"""Draw a sample for a reader who does not know the project: `python tests/architecture/draw_sample.py SEED`.

Prints 25 source files, 40 comments or docstrings with their place, and 25 addresses of pages. The reader says in one
sentence what each does and marks the words they had to guess. Take a new seed for each round.
"""

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeVar

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.architecture.plain_words import ROOT, prose_in

from regulars.kit.settings import Settings
from regulars.server import page_table

FILES: Final = 25
COMMENTS: Final = 40
PAGES: Final = 25
# Shorter files and comments leave nothing to misread.
FILE_LINES_MIN: Final = 20
COMMENT_WORDS_MIN: Final = 6

T = TypeVar("T")


def draw(seed: int) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """Files, comments and pages; the same seed draws the same from the same source."""
    choice = random.Random(seed)
    package = ROOT / "src" / "regulars"
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}
    files = [str(path.relative_to(ROOT)) for path, source in sources.items() if source.count("\n") >= FILE_LINES_MIN]
    comments = [
        f"{path.relative_to(ROOT)}:{line}: {' '.join(text.split())}"
        for path, source in sources.items()
        for line, text in prose_in(source)
        if len(text.split()) >= COMMENT_WORDS_MIN
    ]
    pages = sorted({page.address for page in page_table(Settings()) if page.method == "GET"})
    return _pick(choice, files, FILES), _pick(choice, comments, COMMENTS), _pick(choice, pages, PAGES)


def _pick(choice: random.Random, found: Sequence[T], count: int) -> Sequence[T]:
    return choice.sample(found, min(count, len(found)))


if __name__ == "__main__":
    for title, drawn in zip(("Files", "Comments", "Pages"), draw(int(sys.argv[1])), strict=True):
        sys.stdout.write(f"\n## {title}\n\n")
        for number, one in enumerate(drawn, 1):
            sys.stdout.write(f"{number}. {one}\n")
