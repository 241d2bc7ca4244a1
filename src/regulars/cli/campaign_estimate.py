"""The output of `regulars campaign check`: whom a campaign reaches, its SMS parts and its cost."""

from typing import Any

from regulars.campaigns.estimate import Estimate
from regulars.campaigns.exact_cost import ExactCost
from regulars.campaigns.text_sizes import AudienceSize
from regulars.cli.output import print_outcome, print_rows


def estimate_as_data(found: Estimate) -> dict[str, Any]:
    """The estimate as data for JSON. Costs and parts are computed from a sample of the customers."""
    return {
        "customers": found.counts.total,
        "may_be_texted": found.counts.split.may_be_texted,
        "recipients": found.recipients,
        "held_out": found.held_out,
        "global_holdout": found.global_holdout,
        "capped": found.capped,
        "skipped": found.size.skipped,
        "parts": found.size.parts,
        "cost": found.size.cost.amounts,
        "parts_without_price": found.size.cost.parts_without_price,
        "countries": _countries(found.size),
        "variants": [
            {
                "recipients": variant.recipients,
                "parts": variant.parts,
                "spread": {str(parts): times for parts, times in variant.spread.items()},
                "forces_unicode": [one.character for one in variant.forcing],
            }
            for variant in found.size.variants
        ],
        "duration_s": None if found.duration is None else found.duration.total_seconds(),
        "sampled": found.sampled,
        # Programs read it; an exact count is printed by itself.
        "is_exact": False,
    }


def print_estimate(found: Estimate, exact: ExactCost | None) -> None:
    """Print the estimate, with the exact numbers if the worker has counted them."""
    size = found.size if exact is None or exact.size is None else exact.size
    about = "about " if size is found.size else ""
    print_rows(_countries(size), ("country", "recipients", "parts", "cost"), as_json=False)
    counted = found if exact is None or exact.size is None else exact
    in_holdout = f"{counted.global_holdout:,} in the global holdout, " if counted.global_holdout else ""
    sentences = [
        f"{size.recipients:,} recipients, {counted.held_out:,} held out, {in_holdout}{about}{size.parts:,} parts."
    ]
    if size.cost.amounts:
        cost = ", ".join(f"{amount:,.2f} {currency}" for currency, amount in size.cost.amounts.items())
        sentences.append(f"It costs {about}{cost}.")
    if not size.cost.is_complete:
        sentences.append(f"No price is set for {', '.join(size.cost.parts_without_price)}.")
    if exact is not None and exact.size is None:
        sentences.append(exact.reason or f"{exact.rendered:,} of {exact.customers:,} customers are counted exactly.")
    if found.capped:
        sentences.append(f"About {found.capped:,} have reached the frequency cap.")
    for number, variant in enumerate(found.size.variants, start=1):
        sentences += [f"Variant {number}: {one.character} in {one.word} forces Unicode." for one in variant.forcing]
    print_outcome({}, " ".join(sentences), as_json=False)


def exact_as_data(found: ExactCost | None) -> dict[str, Any] | None:
    """The exact cost as data for JSON; `parts` and `cost` are None until the whole audience is counted."""
    if found is None:
        return None
    size = found.size
    return {
        "customers": found.customers,
        "counted": found.rendered,
        "held_out": found.held_out,
        "global_holdout": found.global_holdout,
        "parts": None if size is None else size.parts,
        "cost": None if size is None else size.cost.amounts,
        "countries": None if size is None else _countries(size),
        "reason": found.reason,
        "completed_at": found.completed_at,
    }


def _countries(size: AudienceSize) -> list[dict[str, Any]]:
    return [
        {"country": each.country or None, "recipients": each.recipients, "parts": each.parts, "cost": each.cost}
        for each in size.countries
    ]
