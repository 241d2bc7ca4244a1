"""The output of `regulars campaign check`: whom a campaign reaches, its SMS parts and its cost."""

from typing import Any

from regulars.campaigns.estimate import Estimate
from regulars.campaigns.exact_cost import ExactCost
from regulars.campaigns.text_sizes import AudienceSize
from regulars.cli.output import pick, print_outcome, print_rows


def estimate_as_data(estimate: Estimate) -> dict[str, Any]:
    """Return the estimate as data for JSON. Costs and parts are computed from a sample of the customers. `spread`
    counts the texts by their number of SMS parts; `forcing` has the characters that force Unicode."""
    return {
        "customers": estimate.counts.total,
        "may_be_texted": estimate.counts.split.may_be_texted,
        **pick(estimate, "recipients", "held_out", "global_holdout", "capped", "gets_text"),
        **pick(estimate.size, "skipped", "parts"),
        "cost": estimate.size.cost.amounts,
        "parts_without_price": estimate.size.cost.parts_without_price,
        "countries": _countries_as_data(estimate.size),
        "variants": [
            {
                **pick(variant, "recipients", "parts"),
                "spread": {str(parts): times for parts, times in variant.spread.items()},
                "forces_unicode": [each.character for each in variant.forcing],
            }
            for variant in estimate.size.variants
        ],
        "duration_s": None if estimate.duration is None else estimate.duration.total_seconds(),
        "sampled": estimate.sampled,
        # Always false: the exact count is an object of its own, but scripts read this key.
        "is_exact": False,
    }


def print_estimate(estimate: Estimate, exact: ExactCost | None) -> None:
    """Print the estimate, with the exact numbers if the worker has counted them."""
    size = estimate.size if exact is None or exact.size is None else exact.size
    about = "about " if size is estimate.size else ""
    print_rows(_countries_as_data(size), ("country", "recipients", "parts", "cost"), as_json=False)
    counted = estimate if exact is None or exact.size is None else exact
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
    if estimate.reach.skipped:
        sentences.append(f"{estimate.gets_text:,} of {estimate.recipients:,} get the text at the chosen start.")
    if estimate.capped:
        sentences.append(f"About {estimate.capped:,} have reached the frequency cap then.")
    for number, variant in enumerate(estimate.size.variants, start=1):
        sentences += [f"Variant {number}: {each.character} in {each.word} forces Unicode." for each in variant.forcing]
    print_outcome({}, " ".join(sentences), as_json=False)


def exact_as_data(exact: ExactCost | None) -> dict[str, Any] | None:
    """Return the exact cost as data for JSON; `parts` and `cost` are None until the whole audience is counted."""
    if exact is None:
        return None
    size = exact.size
    return {
        "customers": exact.customers,
        "counted": exact.rendered,
        **pick(exact, "held_out", "global_holdout"),
        "parts": None if size is None else size.parts,
        "cost": None if size is None else size.cost.amounts,
        "countries": None if size is None else _countries_as_data(size),
        **pick(exact, "reason", "completed_at"),
    }


def _countries_as_data(size: AudienceSize) -> list[dict[str, Any]]:
    return [{"country": each.country or None, **pick(each, "recipients", "parts", "cost")} for each in size.countries]
