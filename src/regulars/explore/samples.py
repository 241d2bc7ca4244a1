"""Code samples for the API reference: the programs in `docs/examples`, with the address of this server."""

from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from regulars.explore.documents import FOLDER

# The server address in the files, which is replaced.
_ADDRESS: Final = "http://127.0.0.1:8080"
# The folder of each language, the suffix of its files, and its name on the page.
_LANGUAGES: Final = {
    "python": (".py", "Python"),
    "typescript": (".mts", "TypeScript"),
    "php": (".php", "PHP"),
    "java": (".java", "Java"),
    "go": (".go", "Go"),
    "csharp": (".cs", "C#"),
    "ruby": (".rb", "Ruby"),
}
# The operations that have samples, and the name of their files without suffix.
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
    """One sample for each language; empty if the operation has none."""
    task = _TASKS.get(operation_id)
    return () if task is None else load_samples(task, address=address)


@cache
def load_samples(task: str, *, address: str) -> tuple[CodeSample, ...]:
    title = "".join(word.capitalize() for word in task.split("-"))
    samples = []
    for folder, (suffix, language) in _LANGUAGES.items():
        names = (f"{task}{suffix}", f"{title}{suffix}", f"{task}/main{suffix}")
        files = [path for name in names if (path := FOLDER / "examples" / folder / name).is_file()]
        samples += [CodeSample(language, path.read_text("utf-8").replace(_ADDRESS, address)) for path in files[:1]]
    return tuple(samples)
