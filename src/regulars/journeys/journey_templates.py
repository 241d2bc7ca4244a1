"""Templates for new journeys: each is a complete definition that can run unchanged."""

from dataclasses import dataclass
from typing import Final

from regulars.conditions.tree import Bought, Consent, Window
from regulars.journeys.definition import Branch, Definition, Reentry, SendText, Wait, WaitUntil

# The first name with the text before it, which is left out if the name is missing.
_NAME: Final = '{{ profile.first_name | before(", ") }}'


@dataclass(frozen=True, slots=True)
class JourneyTemplate:
    key: str
    about: str
    definition: Definition


JOURNEY_TEMPLATES: Final = (
    JourneyTemplate(
        "thank-you",
        "Sends a text the day after a customer's first purchase in a year, at ten in the morning.",
        Definition(
            name="Thank you after the first purchase in a year",
            trigger="purchase",
            filter=Bought(none=True, window=Window(last_days=365)),
            reentry=Reentry(policy="never"),
            exit_on=("return",),
            steps=(
                Wait(days=1),
                WaitUntil(time="10:00"),
                Branch(
                    condition=Consent(state="may_be_texted"),
                    then=(SendText(text=f"Thank you for your visit{_NAME}. See you soon at {{{{ store.name }}}}."),),
                ),
            ),
        ),
    ),
    JourneyTemplate(
        "welcome",
        "Sends a text a few minutes after a customer opts in.",
        Definition(
            name="Welcome after opt-in",
            trigger="opt_in",
            reentry=Reentry(policy="never"),
            steps=(
                Wait(minutes=5),
                SendText(text=f"Welcome{_NAME}. You will hear from us now and then, and never too often."),
            ),
        ),
    ),
    JourneyTemplate(
        "win-back",
        "Sends a text 60 days after the last purchase. Each new purchase restarts the wait.",
        Definition(
            name="Win back after 60 days",
            trigger="purchase",
            exit_on=("purchase",),
            steps=(
                Wait(days=60),
                WaitUntil(time="17:00", weekdays=("thursday", "friday")),
                SendText(text=f"It has been a while{_NAME}. We would be glad to see you again."),
            ),
        ),
    ),
    JourneyTemplate(
        "after-return",
        "Sends a text two days after a return.",
        Definition(
            name="After a return",
            trigger="return",
            reentry=Reentry(policy="after_days", days=30),
            exit_on=("purchase",),
            steps=(
                Wait(days=2),
                WaitUntil(time="11:00"),
                SendText(text=f"Hello{_NAME}, was something not as you hoped? Reply and we will help."),
            ),
        ),
    ),
)
BLANK: Final = Definition(name="New journey", trigger="purchase", steps=())


def find_template(key: str) -> Definition | None:
    """The definition of the template with this key; `blank` has no steps."""
    if key == "blank":
        return BLANK
    return next((template.definition for template in JOURNEY_TEMPLATES if template.key == key), None)
