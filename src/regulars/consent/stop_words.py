"""What a reply by text means for consent: exact keywords only, because nobody is subscribed or withdrawn by a guess."""

import itertools
import re
import unicodedata
from enum import Enum

# A keyword counts as the first word of a short message; in a longer one it may be part of a sentence.
WORDS_MAX = 3

STOP_KEYWORDS = frozenset(
    {
        "STOP", "STOPALL", "STOPP", "STOPPEN", "UNSUBSCRIBE", "UNSUB", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT",
        "ARRET", "ARRETER", "DESABONNER", "DESINSCRIRE", "BAJA", "PARAR", "PARE", "ALTO", "CANCELAR", "ABMELDEN",
        "AFMELDEN", "ANNULLA", "CANCELLA", "FERMA", "SAIR", "DETENER",
    }
)  # fmt: skip
START_KEYWORDS = frozenset({"START", "UNSTOP"})
HELP_KEYWORDS = frozenset({"HELP", "INFO", "AIDE", "HILFE", "AYUDA", "AIUTO", "AJUDA", "HULP"})
_STOP_PAIRS = frozenset({("OPT", "OUT"), ("STOP", "ALL")})

# Words that people use to ask to be left alone without any keyword, folded; each part stands at the start of a word,
# and only other words may stand between two parts. Better one question too many to a person than one text too many.
_ASKS_TO_STOP = re.compile(
    r"\b(?:"
    # English
    r"(?:REMOVE|DELETE|TAKE|OPT) (?:ME|US|MY|THIS)|LEAVE ME|NO MORE|NOT INTERESTED|LOSE MY NUMBER|WRONG NUMBER"
    r"|(?:DO NOT|DONT|NEVER) (?:\w+ ){0,2}(?:TEXT|MESSAGE|CONTACT|WRITE|SEND|CALL|SMS)|STOPP?(?:ED|ING)\b|UNSUBSCRI"
    # French
    r"|ARRET|DESABONN|DESINSCRI|NE (?:\w+ ){0,3}PLUS|PLUS (?:DE|AUCUN|RIEN)|LAISSEZ? MOI|RETIREZ|SUPPRIMEZ|FOUTEZ"
    r"|(?:TRANQUILLE|JAMAIS)"
    # German and Dutch
    r"|NICHT MEHR|KEINE (?:\w+ ){0,2}(?:SMS|NACHRICHT|WERBUNG|TEXTE)|ABBESTELL|ABMELD|AUFHOR|LASST MICH|LOSCH"
    r"|UITSCHRIJV|AFMELD|GEEN (?:\w+ ){0,2}(?:SMS|BERICHT|RECLAME)|NIET MEER|NOOIT MEER"
    # Spanish, Italian, Portuguese
    r"|NO (?:\w+ ){0,3}(?:MAS|QUIERO|ENVI|MAND|ESCRIB)|DEJ(?:A|E|EN|AD) DE|ELIMIN|BORRA|BASTA|NON (?:\w+ ){0,3}PIU"
    r"|NON VOGLIO|SMETT|RIMUOV|CANCELL|NAO (?:\w+ ){0,3}(?:MAIS|QUERO|ENVI)|REMOV"
    r")"
)

_NOT_WORD = re.compile(r"[\W_]+")
# An apostrophe inside a word does not split it: "don't" is one word.
_JOINED = re.compile(r"(?<=\w)['\u2019`](?=\w)")


class Meaning(Enum):
    STOP = "stop"
    START = "start"
    HELP = "help"
    # It asks to stop in words of its own: a person decides.
    PERHAPS_STOP = "perhaps_stop"
    OTHER = "other"


def read_reply(text: str) -> Meaning:
    """The meaning of an inbound message after folding case, accents, width and punctuation."""
    words = _words(text)
    if not words:
        return Meaning.OTHER
    # Letters set apart, as in "S.T.O.P", still spell the keyword.
    if "".join(words) in STOP_KEYWORDS:
        return Meaning.STOP
    if len(words) <= WORDS_MAX:
        if words[0] in STOP_KEYWORDS or tuple(words[:2]) in _STOP_PAIRS:
            return Meaning.STOP
        if words[0] in START_KEYWORDS:
            return Meaning.START
        if words[0] in HELP_KEYWORDS:
            return Meaning.HELP
    pairs = itertools.pairwise(words)
    if any(word in STOP_KEYWORDS for word in words) or any(pair in _STOP_PAIRS for pair in pairs):
        return Meaning.PERHAPS_STOP
    return Meaning.PERHAPS_STOP if _ASKS_TO_STOP.search(" ".join(words)) else Meaning.OTHER


def _words(text: str) -> list[str]:
    # Compatibility decomposition turns full-width letters into plain ones and parts letters from their accents.
    decomposed = unicodedata.normalize("NFKD", text)
    bare = "".join(
        character
        for character in decomposed
        if not unicodedata.combining(character) and unicodedata.category(character) != "Cf"
    )
    folded = unicodedata.normalize("NFKD", bare.casefold()).upper()
    return _NOT_WORD.sub(" ", _JOINED.sub("", folded)).split()
