"""Run every example whose language is installed against a server of its own, and print a table; see `bin/examples`."""

import base64
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
REGULARS = [sys.executable, "-m", "regulars.cli"]
# In this order: a sale needs its store, and an opt-out follows an opt-in.
TASKS = ("store", "profile", "sale", "opt-in", "opt-out", "feed", "webhook")
EXAMPLE_S_MAX = 120
START_S_MAX = 180
SECRET = "whsec_" + base64.b64encode(b"a secret of twenty-four.").decode()
BODY = b'{"type":"profile.created","timestamp":"2026-03-02T09:30:00.000Z","data":{"first_name":"Zo\xc3\xab"}}'


def command_of(language: str, task: str) -> list[str] | None:
    """How an example is run, or None where its language is not installed."""
    title = "".join(word.capitalize() for word in task.split("-"))
    programs: Mapping[str, Sequence[str]] = {
        "curl": ["sh", f"{task}.sh"],
        "python": [sys.executable, f"{task}.py"],
        "typescript": ["tsx", f"{task}.mts"],
        "php": ["php", f"{task}.php"],
        "java": ["java", f"{title}.java"],
        "go": ["go", "run", f"{task}/main.go"],
        "csharp": ["dotnet", "run", f"{title}.cs"],
        "ruby": ["ruby", f"{task}.rb"],
    }
    program, *arguments = programs[language]
    needed = "curl" if language == "curl" else program
    return [program, *arguments] if shutil.which(needed) else None


def main() -> None:
    failed = 0
    print(f"{'':12}" + "".join(f"{task:10}" for task in TASKS))
    with tempfile.TemporaryDirectory(prefix="regulars-examples-") as folder, running_server(Path(folder)) as url:
        for language in ("curl", "python", "typescript", "php", "java", "go", "csharp", "ruby"):
            # An organization of its own: what another language recorded would make every sale a duplicate.
            environment = {
                **os.environ,
                **_folder_of(folder),
                "API_URL": url,
                "API_KEY": new_key(folder, language),
            }
            results = [_run(language, task, environment) for task in TASKS]
            failed += results.count("FAILED")
            print(f"{language:12}" + "".join(f"{result:10}" for result in results), flush=True)
    print(f"{failed} failed")
    sys.exit(failed > 0)


def _run(language: str, task: str, environment: Mapping[str, str]) -> str:
    command = command_of(language, task)
    if command is None:
        return "no tool"
    if task != "webhook":
        return _result(command, language, environment, b"", expected=0)
    genuine = {**environment, **_signed(BODY)}
    first = _result(command, language, genuine, BODY, expected=0)
    # A verifier that accepts everything would pass the first.
    return first if first != "ok" else _result(command, language, genuine, BODY + b" ", expected=1)


def _result(
    command: Sequence[str], language: str, environment: Mapping[str, str], body: bytes, *, expected: int
) -> str:
    done = subprocess.run(
        command,
        cwd=FOLDER / language,
        env=environment,
        input=body,
        capture_output=True,
        timeout=EXAMPLE_S_MAX,
        check=False,
    )
    if done.returncode == expected:
        return "ok"
    print(" ".join(command), done.returncode, (done.stdout + done.stderr).decode(errors="replace"), file=sys.stderr)
    return "FAILED"


def _signed(body: bytes) -> dict[str, str]:
    """A delivery as its receiver gets it; the second signature is of the secret that a rotation left behind."""
    identifier, timestamp = "msg_1", str(int(time.time()))
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    digest = hmac.digest(key, f"{identifier}.{timestamp}.".encode() + body, hashlib.sha256)
    return {
        "WEBHOOK_SECRET": SECRET,
        "WEBHOOK_ID": identifier,
        "WEBHOOK_TIMESTAMP": timestamp,
        "WEBHOOK_SIGNATURE": f"v1,{base64.b64encode(bytes(32)).decode()} v1,{base64.b64encode(digest).decode()}",
    }


@contextmanager
def running_server(folder: Path) -> Iterator[str]:
    # As root the database has an account of its own, which enters the folder.
    folder.chmod(0o711)
    environment = {**os.environ, **_folder_of(str(folder))}
    log = folder / "server.log"
    with log.open("w") as output:
        server = subprocess.Popen([*REGULARS, "serve", "--port", "0"], env=environment, stdout=output, stderr=output)
    try:
        yield _wait_for_address(server, log)
    finally:
        server.terminate()
        server.wait(timeout=60)


def _wait_for_address(server: "subprocess.Popen[bytes]", log: Path) -> str:
    """The address in the server's log, whose lines are JSON documents."""
    deadline = time.monotonic() + START_S_MAX
    while time.monotonic() < deadline and server.poll() is None:
        for line in log.read_text().splitlines():
            if '"server.started"' in line and line.endswith("}"):
                url: str = json.loads(line)["url"]
                return url
        time.sleep(0.2)
    raise TimeoutError(f"the server did not start: {log.read_text()}")


def new_key(folder: str, organization: str) -> str:
    environment = {**os.environ, **_folder_of(folder)}
    subprocess.run(
        [*REGULARS, "organization", "create", organization], env=environment, check=True, capture_output=True
    )
    made = subprocess.run(
        [*REGULARS, "key", "create", "--organization", organization], env=environment, check=True, capture_output=True
    )
    return made.stdout.decode().strip()


def _folder_of(folder: str) -> dict[str, str]:
    return {"REGULARS_DATA_DIR": folder}


if __name__ == "__main__":
    main()
