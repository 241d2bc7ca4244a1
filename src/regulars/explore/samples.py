"""The programs of `docs/examples` for the API reference, with the address of this server."""

from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from regulars.explore.documents import FOLDER

# The server address in the files, which is replaced.
_ADDRESS: Final = "http://127.0.0.1:8080"
# The folder and the ending of each language, and its name for readers.
_LANGUAGES: Final = {
    "python": (".py", "Python"),
    "typescript": (".mts", "TypeScript"),
    "php": (".php", "PHP"),
    "java": (".java", "Java"),
    "go": (".go", "Go"),
    "csharp": (".cs", "C#"),
    "ruby": (".rb", "Ruby"),
}
_TASKS: Final[Mapping[str, str]] = {
    "upsertStore": "store",
    "upsertProfile": "profile",
    "recordSalesEvent": "sale",
    "optIn": "opt-in",
    "optOut": "opt-out",
    "listProfiles": "feed",
}
VERIFY_WEBHOOK: Final = "webhook"


class CodeSample(NamedTuple):
    language: str
    text: str


def samples_of(operation_id: str, *, address: str) -> tuple[CodeSample, ...]:
    """One program for each language; empty if the operation has no example."""
    task = _TASKS.get(operation_id)
    return () if task is None else programs(task, address=address)


@cache
def programs(task: str, *, address: str) -> tuple[CodeSample, ...]:
    title = "".join(word.capitalize() for word in task.split("-"))
    found = []
    for folder, (ending, language) in _LANGUAGES.items():
        names = (f"{task}{ending}", f"{title}{ending}", f"{task}/main{ending}")
        files = [path for name in names if (path := FOLDER / "examples" / folder / name).is_file()]
        found += [CodeSample(language, path.read_text("utf-8").replace(_ADDRESS, address)) for path in files[:1]]
    return tuple(found)
