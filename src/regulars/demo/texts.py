"""The SMS texts of the demo in each language of the chain: of journeys and campaigns, opt-out notices, and replies."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

import msgspec

from regulars.conditions.tree import Consent, OfAmount, OfAttribute
from regulars.demo.chain import COUNTRIES
from regulars.journeys.definition import (
    Branch,
    Definition,
    Exit,
    Reentry,
    SendText,
    SetAttribute,
    Step,
    WaitForPurchase,
)
from regulars.journeys.journey_templates import find_template
from regulars.texts.settings.model import OptOutNotice, Price
from regulars.texts.template import TextVariants

LANGUAGE_KEY: Final = "language"
# The language of texts to customers without a known language.
DEFAULT_LANGUAGE: Final = "en"
_NOTICES: Final = {"fr": "Répondez STOP pour arrêter", "de": "Abmelden: Antwort STOP", "en": "Reply STOP to opt out"}
NOTICES: Final = {code: OptOutNotice(_NOTICES[country.language], "STOP") for code, country in COUNTRIES.items()}
PRICES: Final = {
    code: Price(Decimal("0.053" if country.currency == "CHF" else "0.049"), country.currency)
    for code, country in COUNTRIES.items()
}
# A thank-you, an opt-out, a question, a possible opt-out and a compliment: some need a human decision.
REPLIES: Final = {
    "fr": (
        "Merci beaucoup !",
        "STOP",
        "Vous ouvrez aussi le dimanche ?",
        "Arrêtez de m'écrire s'il vous plaît",
        "Super, à bientôt",
    ),
    "de": (
        "Vielen Dank!",
        "STOP",
        "Haben Sie auch sonntags geöffnet?",
        "Bitte schreiben Sie mir nicht mehr",
        "Super, bis bald",
    ),
    "en": (
        "Thank you!",
        "STOP",
        "Are you open on Sundays?",
        "Please do not text me any more",
        "Great, see you soon",
    ),
}
_BIG_TICKET_TEXTS: Final = {
    "fr": 'Merci {{ profile.first_name | default("à vous") }} pour votre visite à {{ store.name }}.'
    " Un conseil d'entretien ? Répondez à ce message.",
    "de": 'Danke {{ profile.first_name | default("Ihnen") }} für Ihren Besuch bei {{ store.name }}.'
    " Fragen zur Pflege? Antworten Sie auf diese SMS.",
    "en": 'Thank you {{ profile.first_name | default("again") }} for your visit to {{ store.name }}.'
    " A question about care? Reply to this text.",
}
_JOURNEY_TEXTS: Final[Mapping[str, Mapping[str, str]]] = {
    "welcome": {
        "fr": 'Bienvenue {{ profile.first_name | default("chez nous") }}. Nous vous écrirons de temps en temps, jamais'
        " trop souvent.",
        "de": 'Willkommen {{ profile.first_name | default("bei uns") }}. Sie hören ab und zu von uns, nie zu oft.',
        "en": 'Welcome {{ profile.first_name | default("to us") }}. You will hear from us now and then, never too'
        " often.",
    },
    "win-back": {
        "fr": 'Cela fait longtemps, {{ profile.first_name | default("chère cliente, cher client") }}. Nous serions'
        " heureux de vous revoir.",
        "de": 'Lange nicht gesehen, {{ profile.first_name | default("liebe Kundin, lieber Kunde") }}. Wir freuen uns'
        " auf Sie.",
        "en": 'It has been a while, {{ profile.first_name | default("dear customer") }}. We would be glad to see you'
        " again.",
    },
    "after-return": {
        "fr": 'Quelque chose ne convenait pas, {{ profile.first_name | default("chère cliente, cher client") }} ?'
        " Répondez, nous vous aiderons.",
        "de": 'War etwas nicht richtig, {{ profile.first_name | default("liebe Kundin, lieber Kunde") }}?'
        " Antworten Sie, wir helfen gern.",
        "en": 'Was something not right, {{ profile.first_name | default("dear customer") }}? Reply to this text and'
        " we will help.",
    },
}

# The links lead to a page that exists, so that they can be tried.
_CAMPAIGN_TEXTS: Final[Mapping[str, Mapping[str, str]]] = {
    "collection": {
        "fr": '{{ profile.first_name | default("Bonjour") }}, la nouvelle collection est à'
        ' {{ store.city | default("votre boutique") }}. Venez la découvrir.',
        "de": '{{ profile.first_name | default("Guten Tag") }}, die neue Kollektion ist da:'
        ' {{ store.city | default("in Ihrer Filiale") }}.',
        "en": '{{ profile.first_name | default("Hello") }}, the new collection is in'
        ' {{ store.city | default("your store") }}. Come and see it.',
    },
    "preview": {
        "fr": "La nouvelle collection, en avant-première pour vous. Jusqu'à samedi en boutique.",
        "de": "Die neue Kollektion, zuerst für Sie. Bis Samstag in der Filiale.",
        "en": "The new collection, for you first. In store until Saturday.",
    },
    "loyalty": {
        "fr": 'Ce week-end, vos points comptent double : {{ link("https://example.com/?page=fidelite") }}',
        "de": 'An diesem Wochenende zählen Ihre Punkte doppelt: {{ link("https://example.com/?page=treue") }}',
        "en": 'Your points count double this weekend: {{ link("https://example.com/?page=loyalty") }}',
    },
    "sale": {
        "fr": 'Vente privée pour {{ profile.first_name | default("vous") }} : 20 % sur le lin, vendredi et samedi.',
        "de": 'Private Sale für {{ profile.first_name | default("Sie") }}: 20 % auf Leinen, Freitag und Samstag.',
        "en": 'A private sale for {{ profile.first_name | default("you") }}: 20 % off linen, Friday and Saturday.',
    },
    "evening": {
        "fr": "Jeudi nous restons ouverts jusqu'à 21 h. À bientôt.",
        "de": "Am Donnerstag haben wir bis 21 Uhr geöffnet. Bis bald.",
        "en": "We are open until 9 pm on Thursday. See you soon.",
    },
}
CAMPAIGN_TEXTS: Final = {
    key: TextVariants(
        LANGUAGE_KEY,
        texts[DEFAULT_LANGUAGE],
        {language: text for language, text in texts.items() if language != DEFAULT_LANGUAGE},
    )
    for key, texts in _CAMPAIGN_TEXTS.items()
}


def translate_journey(key: str) -> Definition:
    """A journey template whose texts are in the languages of the chain."""
    definition = find_template(key)
    if definition is None:
        raise LookupError(key)
    text_step = _branch_by_language(_JOURNEY_TEXTS[key])
    steps = tuple(text_step if isinstance(step, SendText) else step for step in definition.steps)
    return msgspec.structs.replace(definition, steps=steps)


def _branch_by_language(texts: Mapping[str, str]) -> Step:
    """A step that sends the text in the customer's language: a branch for each language, the default last."""
    step: Step = SendText(text=texts[DEFAULT_LANGUAGE])
    for language in sorted(texts.keys() - {DEFAULT_LANGUAGE}, reverse=True):
        step = Branch(
            condition=OfAttribute(key=LANGUAGE_KEY, comparison="is", value=language),
            then=(SendText(text=texts[language]),),
            otherwise=(step,),
        )
    return step


BIG_TICKET: Final = Definition(
    name="Thank you after a big ticket",
    trigger="purchase",
    filter=OfAmount(at_least_cents=8_000),
    reentry=Reentry(policy="after_days", days=365),
    steps=(
        Branch(
            condition=Consent(state="may_be_texted"),
            then=(
                _branch_by_language(_BIG_TICKET_TEXTS),
                WaitForPurchase(days=45, then=(SetAttribute(key="came_back", value="true"),), otherwise=(Exit(),)),
            ),
            otherwise=(SetAttribute(key="ask_consent_at_till", value="true"),),
        ),
    ),
)
