"""What is answered to STOP and HELP, in the language of the number's country where we have it."""

from typing import Final

_LANGUAGES: Final = {
    "FR": "fr", "BE": "fr", "LU": "fr", "MC": "fr", "GP": "fr", "MQ": "fr", "RE": "fr", "GF": "fr",
    "DE": "de", "AT": "de", "CH": "de", "LI": "de",
    "IT": "it", "SM": "it", "ES": "es", "MX": "es", "AR": "es", "CO": "es", "CL": "es",
    "PT": "pt", "BR": "pt", "NL": "nl",
}  # fmt: skip
_STOPPED: Final = {
    "en": "You will get no more texts from us.",
    "fr": "Vous ne recevrez plus de SMS de notre part.",
    "de": "Sie erhalten keine weiteren SMS von uns.",
    "it": "Non riceverai altri SMS da parte nostra.",
    "es": "No recibirá más SMS de nuestra parte.",
    "pt": "Não receberá mais SMS da nossa parte.",
    "nl": "U ontvangt geen sms meer van ons.",
}
_HELP: Final = {
    "en": "To get no more texts, reply STOP.",
    "fr": "Pour ne plus recevoir de SMS, répondez STOP.",
    "de": "Antworten Sie STOP, um keine SMS mehr zu erhalten.",
    "it": "Per non ricevere altri SMS rispondi STOP.",
    "es": "Para no recibir más SMS responda STOP.",
    "pt": "Para não receber mais SMS responda STOP.",
    "nl": "Antwoord STOP om geen sms meer te ontvangen.",
}
_CONTACT: Final = {
    "en": "Questions: ", "fr": "Contact : ", "de": "Fragen: ", "it": "Contatto: ", "es": "Contacto: ",
    "pt": "Contacto: ", "nl": "Contact: ",
}  # fmt: skip


def stopped_words(country: str | None) -> str:
    return _STOPPED[_LANGUAGES.get(country or "", "en")]


def help_words(country: str | None, *, contact: str | None) -> str:
    language = _LANGUAGES.get(country or "", "en")
    return f"{_HELP[language]} {_CONTACT[language]}{contact}" if contact else _HELP[language]
