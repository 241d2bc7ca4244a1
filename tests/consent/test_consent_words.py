"""Numbers and replies: what is read, and what is refused to be guessed."""

import pytest

from regulars.consent.errors import InvalidPhoneNumber
from regulars.consent.phone import read_consent_number
from regulars.consent.stop_words import START_KEYWORDS, STOP_KEYWORDS, Meaning, classify_reply


def test_a_consent_number_is_stored_in_e164() -> None:
    for written, number in (
        ("+33612345678", "+33612345678"),
        ("+33 6 12 34 56 78", "+33612345678"),
        ("+33 (0)6.12.34.56.78", "+33612345678"),
        ("+1 212-555-0100", "+12125550100"),
        ("+1 (212) 555/0100", "+12125550100"),
        ("+390612345678", "+390612345678"),
        # A space is one of the marks between digits, also after the last one.
        ("+33612345678 ", "+33612345678"),
    ):
        assert read_consent_number(written) == number


def test_anything_else_is_no_consent_number() -> None:
    for written in (
        "", "+", "0612345678", "33612345678", "0033612345678", "+12", "+3361", "+٣٣٦١٢٣٤٥٦٧٨", "+33612345678\n",
        " +33612345678", "\u202a+33612345678", "＋33612345678", "tel:+33612345678",
        "+33612345678 ext 5", "+33612345678;ext=5", "+33612345678x5", "+12345678901234567890", "+999123456789",
        "+((((((", "+33 6 12 34 56 78" + " " * 40, "+33-CALL-ME",
    ):  # fmt: skip
        with pytest.raises(InvalidPhoneNumber) as refused:
            read_consent_number(written)
        assert refused.value.errors[0].field == "phone_number"


def test_every_stop_keyword_stops_whatever_its_case() -> None:
    for keyword in STOP_KEYWORDS:
        texts = (keyword, keyword.lower(), f"  {keyword.title()}!! ", f"{keyword}.")
        assert {classify_reply(text) for text in texts} == {Meaning.STOP}, keyword


def test_case_accents_width_and_punctuation_do_not_hide_a_stop() -> None:
    for text in [
        "Arrêt", "ARRÊTER", "arre\u0302t", "ＳＴＯＰ", "st\u00f6p", "stop\u200b", "\ufeffstop", "«Stop»", "stop 🙏", "S.T.O.P.",
        "opt out", "Opt-Out", "opt_out", "OPT  OUT please", "stop all", "STOP merci", "stop it now", "Stopp bitte",
        "STOP 36179", "Unsubscribe me", "désabonner", "\tStop\r\n", "don't stop", "please stop", "HELP STOP", "START STOP",
        "stop sms", "help start stop info", "stopstop", "STOPSMS",
    ]:  # fmt: skip
        assert classify_reply(text) is Meaning.STOP, text


def test_a_longer_text_that_asks_to_stop_is_for_a_person_to_read() -> None:
    for text in [
        "please stop texting me",
        "stop texting me now",
        "I want to opt out of this",
        "can you unsubscribe me?",
    ]:
        assert classify_reply(text) is Meaning.PERHAPS_STOP, text


def test_any_other_reply_means_nothing_for_consent() -> None:
    for text in ["", "   ", "?!", "ok", "stopwatch", "Endlich!", "non merci", "👍", "I will start", "opt"]:
        assert classify_reply(text) is Meaning.OTHER, text


def test_start_and_unstop_subscribe_again() -> None:
    for text in (*START_KEYWORDS, "start", " Ｓｔａｒｔ! ", "unstop please"):
        assert classify_reply(text) is Meaning.START, text
