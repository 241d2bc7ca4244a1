"""The commands of the guide work as they stand there, in their order, against a new organization."""

import json
import re
import shlex
from pathlib import Path

from tests.support.client import Api

GUIDE = Path(__file__).parents[2] / "docs" / "api.md"
SUCCESSES = {"GET": {200}, "POST": {200, 201}}


def test_every_command_of_the_guide_works(api: Api) -> None:
    commands = re.findall(r"```sh\n(curl .*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(commands) == 13
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "curl"
        [target] = [word.removeprefix("$REGULARS") for word in words if word.startswith("$REGULARS")]
        headers = dict(words[place + 1].split(": ", 1) for place, word in enumerate(words) if word == "-H")
        assert headers.pop("x-api-key") == "$KEY"
        bodies = [words[place + 1] for place, word in enumerate(words) if word == "-d"]
        method = "POST" if bodies else "GET"
        assert ("-X" in words) == bool(bodies)
        body = bodies[0].encode() if bodies else None
        answer = api.call(method, target, body=body, headers=headers)
        assert answer.status in SUCCESSES[method], (command, answer.body)
        for result in answer.json().get("results", []):
            assert result["status"] in (201, "UNSUBSCRIBED"), json.dumps(result)
