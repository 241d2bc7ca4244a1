"""A browser's long description of itself in a few words."""

_BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)
_CHARACTERS_MAX = 40


def browser_of(agent: str | None) -> str:
    """`Firefox on Linux`; what says neither is shown by its beginning."""
    if not agent:
        return "Unknown browser"
    browser = next((name for mark, name in _BROWSERS if mark in agent), None)
    system = next((name for mark, name in _SYSTEMS if mark in agent), None)
    if browser is None:
        return agent[:_CHARACTERS_MAX]
    return f"{browser} on {system}" if system else browser
