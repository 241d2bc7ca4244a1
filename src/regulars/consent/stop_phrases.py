"""Words and phrases by which customers opt out of texts, by language; `stop_words.py` classifies replies with them.

All words are normalized: capitals without accents, punctuation replaced by single spaces. If in doubt, add a phrase: a
reply that a user reviews without need costs little, an unwanted text is unlawful. `tests/consent/stop_table.py` has the
replies that test this list; add a reply there first, then a phrase here.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageWords:
    """A `stop` word that is the whole reply, or part of a short reply, withdraws consent. A reply with one of the
    `roots` or `phrases` suppresses texts to the number until a user decides.

    `roots` are the beginnings of words. `phrases` are regular expressions that match from the beginning of a word; a
    gap in a phrase matches a limited number of whole words.
    """

    stop: frozenset[str]
    help: frozenset[str]
    roots: tuple[str, ...]
    phrases: tuple[str, ...]


# Words that begin with a root but do not mean an opt-out.
HARMLESS_WORDS: Final = frozenset({"STOPWATCH", "STOPWATCHES", "STOPOVER", "STOPLIGHT", "CANCELLATION", "BASTANTE"})
START_WORDS: Final = frozenset({"START", "UNSTOP"})
# Two words that together are one keyword.
STOP_PAIRS: Final = frozenset({("OPT", "OUT"), ("STOP", "ALL")})

ENGLISH: Final = LanguageWords(
    stop=frozenset({"STOP", "STOPALL", "STOPSMS", "UNSUBSCRIBE", "UNSUB", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"}),
    help=frozenset({"HELP", "INFO"}),
    roots=("STOP", "UNSUB", "UNSUS", "OPTOUT", "CANCELL", "SPAM", "HARASS", "UNWANTED", "DISCONTINU", "GDPR"),
    phrases=(
        r"(?:REMOVE|DELETE|TAKE|OPT|ERASE) (?:ME|US|MY|THIS)",
        r"OPT(?:ED|ING)? (?:ME )?OUT",
        r"WANT OUT\b",
        r"O(?:FF|UT OF) (?:YOUR|THIS|THE) (?:LIST|DATABASE)",
        r"LEAVE ME",
        r"(?:NO MORE|NO LONGER|NOT INTERESTED|NOT MY NUMBER|TURN OFF|LOSE MY NUMBER|WRONG (?:NUMBER|PERSON))",
        r"(?:DO NOT|DONT|NEVER|NOT TO|QUIT) (?:\w+ ){0,2}(?:TEXT|MESSAG|CONTACT|WRITE|SEND|CALL|SMS|BOTHER)",
        r"NO (?:TEXTS|MESSAGES|SMS|MARKETING|ADVERTS|ADS)\b",
        r"(?:WITHDRAW|REVOKE|RETRACT)(?:ING)? (?:\w+ ){0,3}(?:CONSENT|PERMISSION|AGREEMENT)",
        r"(?:DO NOT|DONT) (?:WANT|WISH) (?:\w+ ){0,4}(?:TEXT|MESSAG|SMS|MARKETING|NOTIFI|OFFERS|HEAR|RECEIV|THESE)",
        r"(?:NOT|DIDNT|NEVER) (?:\w+ ){0,2}(?:SIGN|SUBSCRIB|CONSENT|AGREE|REGISTER)",
        r"ENOUGH (?:ALREADY|IS|OF)",
        r"(?:CEASE|DESIST|I OBJECT|GET LOST|GO AWAY|SHUT UP|FUCK|PISS OFF)",
        r"REPORT(?:ED|ING)? (?:AS|YOU|THIS)",
        r"(?:MUTE|BLOCK(?:ED|ING)?)(?: ME| YOU| THIS)?$",
    ),
)
FRENCH: Final = LanguageWords(
    stop=frozenset({"ARRET", "ARRETER", "DESABONNER", "DESINSCRIRE"}),
    help=frozenset({"AIDE"}),
    roots=(
        "ARRET", "CESSE", "DESABON", "DESINSCRI", "DESINCRI", "RESILI", "HARCEL", "DEGAGE", "FOUTE", "FICHEZ", "LACHE",
        "TRANQUILLE", "JAMAIS", "RGPD",
    ),
    phrases=(
        r"NE (?:\w+ ){0,3}PLUS",
        r"NE (?:\w+ ){0,2}(?:CONTACT|ENVOY|ECRI|APPEL|DERANG|SOLLICIT)",
        r"N (?:ENVOY|ECRI|APPEL)\w* (?:\w+ )?(?:PLUS|PAS)",
        r"VEU[TX] PLUS",
        r"(?:SOUHAIT|VEU|DESIR)\w* (?:PAS|PLUS) (?:\w+ ){0,2}(?:RECEVOIR|SMS|PUB|MESSAG|CONTACT|SOLLICIT)",
        r"FINI (?:LES|AVEC)",
        r"^FIN$",
        r"PLUS (?:DE|AUCUN|RIEN)",
        r"PAS (?:DE |D )?(?:SMS|PUB|MESSAGES|SOLLICIT|INTERESS)",
        r"LAISSEZ? MOI",
        r"(?:RETIR|ENLEV|SUPPRIM|EFFAC)(?:E|EZ|ER) (?:MOI|NOUS|MON|MES|MA|LE|CE|CES)\b",
        r"(?:RETIRE|REVOQUE|ANNUL)\w* (?:\w+ ){0,2}(?:CONSENT|ACCORD|AUTORIS|INSCRIPTION|ABONNEMENT)",
        r"(?:M|NOUS) OPPOS",
        r"OPPOSITION",
        r"CA SUFFIT",
        r"(?:MAUVAIS|FAUX|ERREUR DE|TROMPEZ? DE) NUMERO",
    ),
)  # fmt: skip
GERMAN: Final = LanguageWords(
    stop=frozenset({"STOPP", "STOPPEN", "ABMELDEN"}),
    help=frozenset({"HILFE"}),
    roots=(
        "ABMELD", "ABGEMELD", "ABBESTELL", "AUFHOR", "WIDERRUF", "WIDERSPR", "KUNDIG", "AUSTRAG", "LOSCH", "UNTERLASS",
        "BELASTIG", "VERPISS", "ENTFERN", "AUFHOER", "LOESCH", "KUENDIG", "BELAESTIG", "DSGVO",
    ),
    phrases=(
        r"HOE?R(?:T|EN)? (?:\w+ ){0,3}AUF\b",
        r"(?:MELD|BESTELL)\w* (?:\w+ ){0,3}AB\b",
        r"TRAG\w* (?:\w+ ){0,3}AUS\b",
        r"(?:NEHM|NIMM|STREICH|ENTFERN)\w* (?:\w+ ){0,2}(?:MICH|MEINE)",
        r"(?:AUS|VON) (?:\w+ ){0,2}(?:VERTEILER|LISTE)",
        r"(?:NICHT|NIE) (?:MEHR|WIEDER)",
        r"KEINE?N? (?:\w+ ){0,2}(?:SMS|NACHRICHT|WERBUNG|TEXTE|INTERESSE|NEWSLETTER)",
        r"(?:KONTAKTIER|SCHREIB)\w* (?:\w+ ){0,3}(?:NICHT|NIE)\b",
        r"WILL (?:DAS|DIES|EUCH|EURE|IHRE) (?:\w+ ){0,2}NICHT",
        r"LASS(?:T|EN)?(?: SIE)? MICH",
        r"NICHT INTERESSIERT",
        r"(?:EINWILLIGUNG|ZUSTIMMUNG) (?:\w+ ){0,3}(?:ZURUCK|ENTZIEH)",
        r"IN RUHE",
        r"FALSCHE NUMMER",
        r"(?:ES|MIR|DAS) REICHT",
        r"SCHLUSS DAMIT",
        r"(?:NIE|NICHT) (?:\w+ ){0,2}(?:ZUGESTIMMT|EINGEWILLIGT)",
        r"RAUS AUS",
    ),
)  # fmt: skip
ITALIAN: Final = LanguageWords(
    stop=frozenset({"ANNULLA", "CANCELLA", "FERMA"}),
    help=frozenset({"AIUTO"}),
    roots=(
        "BASTA", "CANCELL", "DISISCRI", "ANNULL", "RIMUOV", "ELIMIN", "SMETT", "DISATTIV", "DISDI", "DISDETT", "REVOC",
        "MOLEST", "FERMAT", "FINITEL", "TOGLI",
    ),
    phrases=(
        r"NON (?:\w+ ){0,3}PIU",
        r"NON (?:VOGLIO|DESIDER|AUTORIZZ|ROMPE)",
        r"NON (?:\w+ )?(?:CONTATT|SCRIV|MAND|INVI|CHIAM)",
        r"NON (?:SONO|MI|CI) INTERESS",
        r"LASCIA(?:TE)?(?:MI|CI)",
        r"RITIR\w* (?:\w+ ){0,2}CONSENSO",
        r"(?:MI|CI) OPPON",
        r"NUMERO (?:SBAGLIATO|ERRATO)",
        r"SBAGLIATO NUMERO",
        r"NIENTE (?:PIU|SMS|MESSAGGI|PUBBLICITA)",
        r"MAI PIU",
    ),
)  # fmt: skip
SPANISH: Final = LanguageWords(
    stop=frozenset({"BAJA", "PARAR", "PARE", "ALTO", "CANCELAR", "DETENER"}),
    help=frozenset({"AYUDA"}),
    roots=(
        "CANCELE", "DESUSCRI", "DESINSCRI", "ELIMIN", "BORRA", "BORRE", "DETENGA", "PAREN", "PARAD", "MOLESTE",
        "QUITAME", "QUITEN", "QUITAD", "SACAME", "SAQUEN", "ACOSO", "SUFICIENTE",
    ),
    phrases=(
        r"NO (?:\w+ ){0,3}(?:MAS|QUIERO|ENVI|MAND|ESCRIB|CONTACT|MOLEST)",
        r"NO (?:ME|NOS|ESTOY) INTERES",
        r"NO (?:DESEO|AUTORIZ)",
        r"PARA (?:YA|DE)\b",
        r"DEJ(?:A|E|EN|AD) DE",
        r"DEJ(?:A|E|EN|AD)(?:ME|NOS)",
        r"ANUL\w* (?:\w+ ){0,2}(?:SUSCRIP|INSCRIP)",
        r"(?:RETIR|REVOC)\w* (?:\w+ ){0,2}(?:CONSENT|AUTORIZ)",
        r"(?:ME|NOS) OPON",
        r"NUMERO EQUIVOCADO",
        r"EQUIVOC\w* DE NUMERO",
        r"NUNCA MAS",
    ),
)  # fmt: skip
PORTUGUESE: Final = LanguageWords(
    stop=frozenset({"SAIR"}),
    help=frozenset({"AJUDA"}),
    roots=("REMOV", "DESCADASTR"),
    phrases=(r"NAO (?:\w+ ){0,3}(?:MAIS|QUERO|ENVI)",),
)
DUTCH: Final = LanguageWords(
    stop=frozenset({"AFMELDEN"}),
    help=frozenset({"HULP"}),
    roots=("AFMELD", "UITSCHRIJV"),
    phrases=(r"GEEN (?:\w+ ){0,2}(?:SMS|BERICHT|RECLAME)", r"(?:NIET|NOOIT) MEER"),
)

LANGUAGES: Final = (ENGLISH, FRENCH, GERMAN, ITALIAN, SPANISH, PORTUGUESE, DUTCH)
