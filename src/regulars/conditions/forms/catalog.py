"""The forms of conditions by the kinds that they offer."""

from typing import Final

from regulars.conditions.tree import FORMS

FORMS_BY_KIND: Final = {form.kind: form for form in FORMS}
# The labels of the conditions on customers and their sales, and of those on the ticket that triggered a journey.
KINDS: Final = {form.kind: form.label for form in FORMS if not form.is_of_ticket}
TICKET_KINDS: Final = {form.kind: form.label for form in FORMS if form.is_of_ticket}
QUICK_KINDS: Final = frozenset(form.kind for form in FORMS if form.is_quick)
