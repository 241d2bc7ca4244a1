"""How `regulars segment` shows segments, figures and explanations."""

from typing import Any

import msgspec

from regulars.conditions.customers import Explained, ObservedConsent
from regulars.kit import ids
from regulars.segments.analysis.protocol import SegmentCounts
from regulars.segments.saved.model import SegmentRow, SizeRow


def as_data(row: SegmentRow) -> dict[str, Any]:
    return {
        "id": ids.SEGMENT.encode(row.id),
        "name": row.name,
        "version": row.version,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def size_as_data(size: SizeRow | None) -> dict[str, Any] | None:
    if size is None:
        return None
    return {
        "total": size.total,
        "may_be_texted": size.may_be_texted,
        "version": size.version,
        "counted_at": size.counted_at,
    }


def figures_as_data(figures: SegmentCounts) -> dict[str, Any]:
    return {
        "total": figures.total,
        "customers": figures.customers,
        "split": msgspec.to_builtins(figures.split),
        "conditions": [
            {"path": list(one.path), "count": one.count, "unreadable": one.unreadable} for one in figures.conditions
        ],
        "as_of": figures.as_of,
    }


def tree_as_data(explained: Explained) -> dict[str, Any]:
    return {
        "condition": str(type(explained.condition).__struct_config__.tag),
        "holds": explained.holds,
        "saw": _saw(explained),
        "of": [tree_as_data(inner) for inner in explained.inner],
    }


def _saw(explained: Explained) -> str | None:
    """What was seen, in short."""
    observation = explained.observation
    if observation is None:
        return None
    shown = {name: value for name, value in observation._asdict().items() if name not in {"sale", "last", "standing"}}
    for name in ("sale", "last"):
        value = getattr(observation, name, None)
        if value is not None:
            shown[name] = getattr(value, "external_id", value)
    if isinstance(observation, ObservedConsent):
        shown = {name: value for name, value in observation.standing._asdict().items() if value is not None}
    return ", ".join(f"{name}: {value}" for name, value in shown.items())


def lines_of(explained: Explained, depth: int) -> list[str]:
    mark = {True: "+", False: "-", None: "?"}[explained.holds]
    name = str(type(explained.condition).__struct_config__.tag)
    key = getattr(explained.condition, "key", "")
    observation = _saw(explained)
    words = " ".join(part for part in (name, key) if part) + (f" ({observation})" if observation else "")
    return [
        f"{'  ' * depth}{mark} {words}",
        *(line for inner in explained.inner for line in lines_of(inner, depth + 1)),
    ]
