"""Generate clients from docs/openapi.json with stock generators, compile them, call a server with them, and print a
table; see `bin/clients`. The generators are installed into a temporary folder, by package name."""

import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
DOCUMENT = FOLDER.parent / "openapi.json"
EXAMPLES = runpy.run_path(str(FOLDER.parent / "examples" / "run.py"))
new_key, running_server = EXAMPLES["new_key"], EXAMPLES["running_server"]

COMMAND_S_MAX = 900
PROGRAM_MISSING = 127
LOG = Path(tempfile.gettempdir()) / "regulars-clients.log"
REASON_LENGTH_MAX = 100
# A new store, profile, sale and consent are 201; a withdrawal is 200.
STATUSES = ["201", "201", "201", "201", "200"]
INSTALL = """
python3 -m venv tools
tools/bin/pip install --quiet openapi-python-client openapi-generator-cli httpx attrs pydantic python-dateutil urllib3
"""
INSTALL_NODE = "npm install --silent --no-save --prefix node openapi-typescript openapi-fetch typescript@5"
GENERATOR = "java -jar tools/lib/python3*/site-packages/openapi_generator_cli/*.jar generate -i {document}"
IMPORT_ALL = """../tools/bin/python -c '
import importlib, pkgutil
package = importlib.import_module("{package}")
for module in pkgutil.walk_packages(package.__path__, "{package}."):
    importlib.import_module(module.name)
'"""
TSC = "../node/node_modules/.bin/tsc --strict --skipLibCheck --target es2022 --lib es2022,dom --outDir built"
# The generated module asks for a newer Go than it needs, which an older Go refuses.
GO_VERSION = "go mod edit -go=$(go env GOVERSION | sed 's/^go\\([0-9]*[.][0-9]*\\).*/\\1/')"
HAS_GUZZLE = "php -r 'exit((int) !stream_resolve_include_path(\"GuzzleHttp/autoload.php\"));'"


@dataclass(frozen=True)
class Client:
    """Shell commands that generate, compile and run one client. `compile` and `run` start in the client's folder,
    where `program` is copied to; `needs` and `run_needs` are the programs that must be installed."""

    name: str
    folder: str
    needs: tuple[str, ...]
    generate: str
    program: tuple[str, str] | None
    compile_needs: tuple[str, ...]
    compile: str
    run: str | None


def openapi_generator(
    language: str,
    *,
    program: tuple[str, str] | None,
    compile_needs: tuple[str, ...] = (),
    compile: str,  # noqa: A002 - the name of the step
    run: str | None,
) -> Client:
    generate = f"{GENERATOR} -g {language} -o {language}"
    name = f"openapi-generator {language}"
    return Client(name, language, ("java",), generate, program, compile_needs, compile, run)


CLIENTS = [
    Client(
        name="openapi-python-client",
        folder="python-client",
        needs=(),
        generate="tools/bin/openapi-python-client generate --path {document} --output-path python-client --overwrite",
        program=("openapi_python_client.py", "program.py"),
        compile_needs=(),
        compile=IMPORT_ALL.format(package="regulars_api_client"),
        run="../tools/bin/python program.py",
    ),
    openapi_generator(
        "python",
        program=("openapi_generator_python.py", "program.py"),
        compile=IMPORT_ALL.format(package="openapi_client"),
        run="../tools/bin/python program.py",
    ),
    openapi_generator(
        "go",
        program=("main.go", "program/main.go"),
        compile_needs=("go",),
        compile=f"{GO_VERSION} && go build ./... && go build -o built ./program",
        run="./built",
    ),
    openapi_generator(
        "typescript-fetch",
        program=("typescript_fetch.ts", "program.ts"),
        compile_needs=("node",),
        compile=f"{TSC} --module commonjs --moduleResolution node10 program.ts",
        run="node built/program.js",
    ),
    openapi_generator(
        "java",
        program=None,
        compile_needs=("mvn",),
        compile="mvn -q -B -Dstyle.color=never -DskipTests compile",
        run=None,
    ),
    openapi_generator(
        "php",
        program=("sale.php", "program.php"),
        compile_needs=("php",),
        compile="find lib -name '*.php' -print0 | xargs -0 -n 1 php -l",
        run=f'if [ -n "$(command -v composer)" ]; then composer -q install --no-dev; '
        f"else {HAS_GUZZLE} || {{ echo 'Composer or Guzzle is not installed'; exit 127; }}; fi; php program.php",
    ),
    Client(
        name="openapi-typescript",
        folder="node",
        needs=("npm",),
        generate="node/node_modules/.bin/openapi-typescript {document} -o node/regulars.d.ts",
        program=("openapi_typescript.ts", "program.ts"),
        compile_needs=(),
        compile=f"{TSC} --module nodenext --moduleResolution nodenext program.ts",
        run="node built/program.js",
    ),
]


class StepFailed(Exception):
    """A step of a client failed; the message is its cell of the table."""


def main() -> None:
    failed = False
    row = "| {:34} | {:9} | {:8} | {} |".format
    with (
        tempfile.TemporaryDirectory(prefix="regulars-clients-") as name,
        tempfile.TemporaryDirectory(prefix="regulars-clients-data-") as data,
    ):
        folder = Path(name)
        log = folder / "log"
        _call(INSTALL, folder, log)
        if shutil.which("npm"):
            _call(INSTALL_NODE, folder, log)
        print(row("tool", "generates", "compiles", "runs"))
        print("|---|---|---|---|")
        with running_server(Path(data)) as url:
            for number, client in enumerate(CLIENTS):
                # An organization of its own: what another client recorded would be no 201.
                key = new_key(data, f"client-{number}")
                started = time.monotonic()
                cells = _steps(client, folder, log, {"API_URL": url, "API_KEY": key})
                failed |= any(cell.startswith("no:") for cell in cells)
                print(row(client.name, *cells), flush=True)
                print(f"{client.name}: {time.monotonic() - started:.0f} s", file=sys.stderr)
        shutil.copy(log, LOG)
    print(f"What the tools printed: {LOG}", file=sys.stderr)
    sys.exit(failed)


def _steps(client: Client, folder: Path, log: Path, server: Mapping[str, str]) -> list[str]:
    """The cells of a client's row. A step whose predecessor failed is not tried."""
    cells: list[str] = []
    try:
        _need(client.needs)
        _call(client.generate.format(document=DOCUMENT), folder, log)
        cells.append("yes")
        _need(client.compile_needs)
        own = folder / client.folder
        if client.program is not None:
            source, target = client.program
            (own / target).parent.mkdir(exist_ok=True)
            shutil.copy(FOLDER / source, own / target)
        _call(client.compile, own, log)
        cells.append("yes")
        if client.run is None:
            raise StepFailed("no program")
        printed = _call(client.run, own, log, server).split()
        cells.append("yes" if printed == STATUSES else f"no: the statuses were {' '.join(printed)}")
    except StepFailed as failure:
        cells.append(str(failure))
    return cells + ["-"] * (3 - len(cells))


def _need(programs: tuple[str, ...]) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise StepFailed(f"no tool ({program})")


def _call(command: str, folder: Path, log: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a shell command and return what it printed. 127 is the shell's status for a program that is missing."""
    done = subprocess.run(
        ["/bin/sh", "-ec", command],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=COMMAND_S_MAX,
        check=False,
    )
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {command}\n{done.stdout}{done.stderr}\n")
    if done.returncode == PROGRAM_MISSING:
        raise StepFailed(f"no tool ({_first_line(done.stdout + done.stderr)})")
    if done.returncode != 0:
        raise StepFailed(f"no: {_first_line(done.stderr + done.stdout)}")
    return done.stdout


def _first_line(text: str) -> str:
    """The first line that names an error, or else the first one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no message"]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines)[0][:REASON_LENGTH_MAX].replace("|", "/")


if __name__ == "__main__":
    main()
