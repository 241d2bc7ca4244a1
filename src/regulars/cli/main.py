"""The `regulars` command: the table of its subcommands, the option `--version`, and `regulars config`."""

import dataclasses
import importlib.metadata
import tomllib
from pathlib import Path
from typing import Annotated, Final

import typer

from regulars.cli import error_handling
from regulars.cli.lazy_commands import LazyCommand, lazy_group
from regulars.cli.output import out, print_json
from regulars.kit import log, settings

PROJECT_FILE: Final = Path(__file__).parents[3] / "pyproject.toml"

COMMANDS: Final = {
    "serve": LazyCommand("serve:serve", "Run the API, the pages and the worker until SIGTERM or Ctrl+C.", is_slow=True),
    "serve-process": LazyCommand(
        "serve:serve_process", "One of several server processes; `regulars serve` starts it.", hidden=True
    ),
    "worker": LazyCommand(
        "worker:worker",
        "Run background jobs until SIGTERM or Ctrl+C; `regulars serve` runs them too, unless started with --no-worker.",
    ),
    "analysis": LazyCommand("analysis:analysis", "Count segments until SIGTERM or Ctrl+C.", hidden=True),
    "migrate": LazyCommand(
        "database:migrate_schema",
        "Apply missing migrations; safe while servers run, and on several nodes at once.",
    ),
    "doctor": LazyCommand(
        "doctor:doctor",
        "Check versions, durability, migrations, clock and disk, and say how to fix problems; exit code 1 if there are"
        " any.",
    ),
    "backup": LazyCommand(
        "backup:backup", "Write a consistent copy of the whole database into FILE, while servers keep running."
    ),
    "restore": LazyCommand(
        "backup:restore",
        "Restore a backup into an empty database or, with --force, replace the data that is there.\n\nSessions and"
        " one-time links end, texts are put on hold, and customers who were erased after the backup are erased again.",
    ),
    "config": LazyCommand("main:config", "Show every setting: value, source, meaning. Passwords are masked."),
    "demo": LazyCommand(
        "demo:demo",
        "Fill a demo organization with two years of sample data: stores, customers, consents, tickets, returns, and"
        " journeys with simulated texts and replies.",
    ),
    "import": LazyCommand(
        "import_file:import_file",
        "Import a file under the rules of the API. Importing it again changes nothing; exit code 1 if rows were"
        " rejected.",
    ),
    "address": LazyCommand("public_address:app", "Show and set the public address of the server."),
    "organization": LazyCommand("organization:app", "Create, list, rename, configure and delete organizations."),
    "key": LazyCommand("key:app", "Create, list and revoke API keys."),
    "consent": LazyCommand("verify:consent_app", "Verify the consent ledger."),
    "audit": LazyCommand("verify:audit_app", "Verify the audit log."),
    "message": LazyCommand("message:app", "List, send and receive texts."),
    "explore": LazyCommand(
        "explore:explore",
        "Show figures of sales: any measure by up to two dimensions, beside another period, or a question that was"
        " shared in Explore.",
    ),
    "attribution": LazyCommand("attribution:app", "Show what is credited to texts, and compute it anew."),
    "segment": LazyCommand("segment:app", "Define, count and export groups of customers."),
    "inbox": LazyCommand("inbox:app", "Read and answer replies that need a person."),
    "journey": LazyCommand("journey:app", "Define, run and inspect automations."),
    "campaign": LazyCommand("campaign:app", "Send one text to the members of segments, and stop it."),
    "sms": LazyCommand(
        "sms:app", "Choose the SMS provider, set sending rules and the global holdout, hold and release texts."
    ),
    "webhook": LazyCommand("webhook:app", "Manage webhook endpoints, list their deliveries and send them again."),
    "user": LazyCommand("user:app", "Invite users, change their roles, reset and disable their accounts."),
    "vault": LazyCommand("vault:app", "Encrypt the secrets in the database, and change the key."),
}

app = typer.Typer(
    name="regulars",
    cls=lazy_group(COMMANDS),
    help="Customers, stores, sales and SMS consent of a retailer, self-hosted: each sale is stored exactly once, and"
    " each consent can be proved.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def find_version() -> str:
    """Return the version of the source checkout that runs, else of the installed package; a machine may have both."""
    if PROJECT_FILE.is_file():
        version: str = tomllib.loads(PROJECT_FILE.read_text(encoding="utf-8"))["project"]["version"]
        return version
    return importlib.metadata.version("regulars")


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(find_version())
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    # Log lines go to stderr from the beginning: stdout is for data.
    log.configure(settings.Settings())


def config(as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False) -> None:
    descriptions = settings.describe(settings.load())
    if as_json:
        print_json([dataclasses.asdict(each) for each in descriptions])
        return
    for each in descriptions:
        unit = f" {each.unit}" if each.unit and each.value else ""
        out.print(f"[bold]{each.variable}[/bold] = ", end="")
        out.print(f"{each.value or '(none)'}{unit}", end="", markup=False)
        out.print(f"  [dim]from {each.source}[/dim]" if each.source != "default" else "  [dim]default[/dim]")
        out.print(f"    {each.meaning}", markup=False)


def main() -> None:
    error_handling.run(app)
