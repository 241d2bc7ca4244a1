"""A condition on the day of the last purchase."""

from typing import ClassVar

from regulars.conditions.forms.parts import Day, Form, Label, SalesFilter
from regulars.conditions.kinds.sales import PurchaseDayKind


class LastPurchase(PurchaseDayKind, frozen=True, kw_only=True, tag="last_purchase"):
    """The day of the last purchase; `without_value` of `when` says whether customers who never bought match."""

    WHICH: ClassVar = "last"
    FORM: ClassVar = Form(
        kind="last_purchase",
        label="Last purchase",
        is_quick=True,
        defaults={"when_days": "30"},
        parts=(Label(), Day(never=True), SalesFilter()),
    )
