"""A condition on the day of the first purchase."""

from typing import ClassVar

from regulars.conditions.forms.parts import Day, Form, Label, SalesFilter
from regulars.conditions.kinds.sales import PurchaseDayKind


class FirstPurchase(PurchaseDayKind, frozen=True, kw_only=True, tag="first_purchase"):
    """The day of the first purchase; `without_value` of `when` says whether customers who never bought match."""

    WHICH: ClassVar = "first"
    FORM: ClassVar = Form(
        kind="first_purchase",
        label="First purchase",
        defaults={"when_days": "30"},
        parts=(Label(), Day(never=True), SalesFilter()),
    )
