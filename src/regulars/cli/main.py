"""The list of all commands."""

from typing import Annotated, Final

import typer

from regulars.cli import ending, version
from regulars.cli.lazy import LazyCommand, lazy_group
from regulars.kit import log
from regulars.kit.settings import Settings

COMMANDS: Final = {
    "serve": LazyCommand(
        "serve:serve",
        "Serve the API and the pages, and run the worker beside them, until SIGTERM or Ctrl+C.",
    ),
    "serve-process": LazyCommand(
        "serve:serve_process", "One of several server processes; `regulars serve` starts it.", hidden=True
    ),
    "worker": LazyCommand(
        "work:worker",
        "Run the jobs until SIGTERM or Ctrl+C; `regulars serve` does it too, unless told --no-worker.",
    ),
    "analysis": LazyCommand("analysis:analysis", "Count segments until SIGTERM or Ctrl+C.", hidden=True),
    "migrate": LazyCommand(
        "migrating:migrate",
        "Apply the migrations that are missing; safe while servers run and when several nodes do it at once.",
    ),
    "doctor": LazyCommand(
        "doctor:doctor",
        "Check versions, durability, migrations, clock and disk, and say what to do; exit code 1 if anything is wrong.",
    ),
    "backup": LazyCommand(
        "backup:backup", "Write the whole database into FILE, as of one moment, while everything goes on running."
    ),
    "restore": LazyCommand(
        "backup:restore",
        "Bring back a backup, into an empty database or, with --force, in place of what is there.\n\nSessions and links"
        " end, texts are put on hold, and customers who were erased after the backup are erased again.",
    ),
    "config": LazyCommand("config:config", "Show every setting: value, source, meaning. Passwords are masked."),
    "demo": LazyCommand(
        "demo:demo",
        "Fill an organization with two years of a believable chain: shops, customers, consents, tickets, returns, and"
        " journeys with simulated texts and replies.",
    ),
    "import": LazyCommand(
        "import_:import_file",
        "Import a file by the rules of the API. Running it twice changes nothing; exit code 1 says rows were rejected.",
    ),
    "organization": LazyCommand("organization:app", "Create, list, rename, set up and delete organizations."),
    "key": LazyCommand("key:app", "Create, list and revoke API keys."),
    "consent": LazyCommand("verify:consent_app", "Prove the consent ledger."),
    "audit": LazyCommand("verify:audit_app", "Prove the audit log."),
    "message": LazyCommand("message:app", "Texts that were sent and received."),
    "segment": LazyCommand("segment:app", "Customers described by conditions, counted exactly."),
    "inbox": LazyCommand("inbox:app", "Replies that wait for a person."),
    "journey": LazyCommand("journey:app", "Automations that a recent sale or consent enters at most once."),
    "sms": LazyCommand("sms:app", "How an organization texts."),
    "webhook": LazyCommand("webhook:app", "Manage webhook endpoints, and look at and repeat their deliveries."),
    "user": LazyCommand("user:app", "Create people who sign in, give them links and roles."),
    "vault": LazyCommand("vault:app", "Seal secrets of the database, and change their key."),
}

app = typer.Typer(
    name="regulars",
    cls=lazy_group(COMMANDS),
    help="Customers, shops, sales and SMS consent of a retailer: ingested exactly once, kept provably, self-hosted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version.running())
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    # What a library or a lower room has to say goes to stderr from the first word on: stdout is for data.
    log.configure(Settings())


def main() -> None:
    ending.run(app)
