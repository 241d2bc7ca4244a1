"""`regulars config`: every setting with its value, where it came from and what it means."""

import dataclasses
from typing import Annotated

import typer

from regulars.cli.output import out, print_json
from regulars.kit import settings


def config(as_json: Annotated[bool, typer.Option("--json", help="Write JSON for programs.")] = False) -> None:
    described = settings.describe(settings.load())
    if as_json:
        print_json([dataclasses.asdict(each) for each in described])
        return
    for each in described:
        unit = f" {each.unit}" if each.unit and each.value else ""
        out.print(f"[bold]{each.variable}[/bold] = ", end="")
        out.print(f"{each.value or '(none)'}{unit}", end="", markup=False)
        out.print(f"  [dim]from {each.source}[/dim]" if each.source != "default" else "  [dim]default[/dim]")
        out.print(f"    {each.meaning}", markup=False)
