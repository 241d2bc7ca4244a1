"""The list of all commands."""

from typing import Annotated

import typer

from regulars.cli import (
    analysis,
    audit,
    backup,
    config,
    consent,
    demo,
    doctor,
    ending,
    import_,
    inbox,
    journey,
    key,
    message,
    migrating,
    organization,
    segment,
    serve,
    sms,
    user,
    vault,
    version,
    webhook,
    work,
)
from regulars.kit import log
from regulars.kit.settings import Settings

app = typer.Typer(
    name="regulars",
    help="Customers, shops, sales and SMS consent of a retailer: ingested exactly once, kept provably, self-hosted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command()(serve.serve)
app.command("serve-process", hidden=True)(serve.serve_process)
app.command()(work.worker)
app.command(hidden=True)(analysis.analysis)
app.command()(migrating.migrate)
app.command()(doctor.doctor)
app.command()(backup.backup)
app.command()(backup.restore)
app.command()(config.config)
app.command()(demo.demo)
app.command("import")(import_.import_file)
app.add_typer(organization.app, name="organization")
app.add_typer(key.app, name="key")
app.add_typer(consent.app, name="consent")
app.add_typer(audit.app, name="audit")
app.add_typer(message.app, name="message")
app.add_typer(segment.app, name="segment")
app.add_typer(inbox.app, name="inbox")
app.add_typer(journey.app, name="journey")
app.add_typer(sms.app, name="sms")
app.add_typer(webhook.app, name="webhook")
app.add_typer(user.app, name="user")
app.add_typer(vault.app, name="vault")


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
