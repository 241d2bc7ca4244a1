"""Replies without a keyword: which of them a person must read before another text leaves."""

from tests.consent.stop_table import CAUTIOUS, ORDINARY, REQUESTS

from regulars.consent.stop_words import HELP_KEYWORDS, Meaning, classify_reply

OWN_WORDS = [
    "arrêtez de m'écrire", "remove me please", "Take me off your list", "Please don’t text me again",
    "do not ever contact me", "leave me alone", "no more messages thanks", "delete my number", "wrong number",
    "Je ne veux plus recevoir vos messages", "plus de sms svp", "laissez-moi tranquille", "je veux me désinscrire svp",
    "je souhaite me désabonner de la liste", "Ne m'envoyez plus rien", "supprimez mon numéro",
    "Bitte keine weiteren SMS", "Ich möchte nicht mehr angeschrieben werden", "Lasst mich in Ruhe", "abbestellen",
    "Bitte löschen Sie meine Nummer", "hört auf damit, aufhören", "bitte von der Liste abmelden jetzt",
    "geen berichten meer aub", "ik wil me uitschrijven", "niet meer sturen",
    "no quiero recibir más mensajes", "dejen de escribirme", "no me mandéis más", "elimínenme de la lista",
    "basta!", "non voglio più messaggi", "smettetela", "rimuovetemi per favore", "não quero mais mensagens",
]  # fmt: skip


def test_help_is_asked_for_in_several_languages():
    assert {classify_reply(f" {keyword.lower()} ?") for keyword in HELP_KEYWORDS} == {Meaning.HELP}


def test_a_request_to_stop_in_own_words_waits_for_a_person():
    assert [text for text in OWN_WORDS if classify_reply(text) is not Meaning.PERHAPS_STOP] == []


def test_every_request_to_stop_of_the_table_suppresses_at_least():
    requests = [text for texts in REQUESTS.values() for text in texts]
    assert [text for text in requests if classify_reply(text) not in {Meaning.STOP, Meaning.PERHAPS_STOP}] == []


def test_an_ordinary_reply_of_the_table_goes_to_the_inbox_and_suppresses_nothing():
    assert [text for text in ORDINARY if classify_reply(text) is not Meaning.OTHER] == []


def test_a_reply_with_a_stop_word_in_a_longer_sentence_waits_for_a_person_and_withdraws_nothing():
    assert [text for text in CAUTIOUS if classify_reply(text) is not Meaning.PERHAPS_STOP] == []


def test_the_table_is_as_large_as_it_has_to_be():
    assert all(len(texts) >= 50 for texts in REQUESTS.values())
    assert len(ORDINARY) >= 100
