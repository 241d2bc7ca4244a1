"""Replies as people write them, by language: those that ask to stop, and those that do not.

A request must suppress the number, at once or until a person decides. An ordinary reply must withdraw nothing; the few
that are suppressed although they ask for nothing are named, so that each new one is a decision.
"""

REQUESTS = {
    "en": (
        "stop", "STOP!!!", "stopstop", "STOPSMS", "stop sms", "HELP STOP", "START STOP", "please stop", "Stop texting me",
        "stop messaging me please", "Stop sending me these", "STOP STOP STOP", "stop it", "Can you stop?", "stopp", "s t o p",
        "Please stop all messages to this number", "I withdraw my consent", "I revoke my consent to receive texts",
        "unsubscribe", "unsubcribe", "unsuscribe me", "Unsubscribe please thanks", "opt out", "optout", "opt me out", "opt-out please",
        "I'd like to opt out of these messages", "I want out", "remove me", "remove my number", "Take me off this list",
        "take my number off your list", "delete my number", "Delete me from your database", "do not contact me",
        "Do not text me again", "don't text me", "dont message me anymore", "never text me again", "No more texts",
        "no more messages please", "no texts please", "quit texting me", "cancel", "cancel my subscription", "end", "quit",
        "leave me alone", "lose my number", "not interested", "wrong number", "You have the wrong person",
        "I did not sign up for this", "I never signed up for this", "who gave you my number? remove it", "this is spam",
        "spam", "Reported as spam", "I don't want these messages", "I do not wish to receive marketing", "Enough already",
        "cease and desist", "please cease", "I object to marketing", "block", "fuck off", "get lost", "go away", "no thanks stop",
        "Please take this number off", "stop these texts immediately or I will report you",
        "I no longer wish to receive texts", "No longer interested", "pls unsubscribe", "unsubscribed",
        "how do I unsubscribe", "How can I get off this list", "please discontinue", "text stop", "I said stop",
        "Stop!!! I already told you", "do not send me anything", "I'm not a customer anymore, remove",
        "not my number", "no gracias, no más", "withdraw consent", "I've changed my mind, no texts",
        "turn off notifications", "delete my data", "erase my data", "GDPR erasure request", "mute", "Stop spamming",
    ),
    "fr": (
        "stop", "stoppez les sms", "Stoppez", "stopper", "STOP SMS", "stop pub", "cessez", "Cessez de m'envoyer des messages",
        "arrêt", "arrêtez", "arretez svp", "arrete", "Arrêtez de m'écrire", "Merci d'arrêter", "arrêtez vos messages", "ARRET SMS",
        "ne me contactez pas", "Ne me contactez plus", "ne m'envoyez plus de sms", "n'envoyez plus rien", "Ne plus m'écrire",
        "je ne veux plus recevoir vos messages", "je veux plus de vos sms", "j'veux plus de pub", "plus de sms svp", "plus de pub merci",
        "plus jamais", "pas de pub", "désabonnement", "désabonnez-moi", "me désabonner", "Je souhaite me désabonner", "desabonner",
        "désinscription", "désinscrivez moi", "desinscrire", "désinscrivez-moi de la liste", "retirez-moi de votre liste",
        "retirez mon numéro", "Supprimez mon numéro", "supprimer mes données", "effacez mes coordonnées", "enlevez moi de la liste",
        "Je retire mon consentement", "je révoque mon accord", "Je m'oppose à la prospection", "opposition", "laissez-moi tranquille",
        "foutez moi la paix", "fichez-moi la paix", "lâchez-moi", "ça suffit", "c'est du harcèlement", "harcèlement", "spam",
        "vous vous trompez de numéro", "mauvais numéro", "erreur de numéro", "pas intéressé", "Je ne suis pas intéressée",
        "non merci, plus de messages", "résilier", "résiliation de mon abonnement", "annuler mon inscription", "dégagez",
        "FIN", "je ne souhaite plus être contacté", "je ne souhaite pas recevoir de publicité",
        "merci de ne plus me solliciter", "svp enlever mon numero de votre base", "supprimez moi",
        "stop aux messages", "STOP AU 36111", "je me désinscris", "desabonne moi", "désabonné", "arretté",
        "ne pas déranger", "fini les sms", "RGPD supprimer",
    ),
    "de": (
        "stop", "Stopp", "STOPP SMS", "stoppen", "Bitte stoppen Sie die SMS", "Hört auf", "Hören Sie auf", "hör auf", "aufhören",
        "Bitte aufhören mit den Nachrichten", "Ich widerrufe meine Einwilligung", "Widerruf", "Hiermit widerspreche ich der Werbung",
        "widerrufe", "Ich widerspreche", "Abmelden", "abmeldung", "Bitte melden Sie mich ab", "melde mich ab", "Ich möchte mich abmelden",
        "abbestellen", "Bestellen Sie mich ab", "Newsletter abbestellen", "Kündigung", "ich kündige", "Keine SMS mehr", "keine Werbung",
        "Keine weiteren Nachrichten bitte", "bitte keine Nachrichten", "Nicht mehr schreiben", "Schreiben Sie mir nicht mehr",
        "Schreibt mir nie wieder", "Kontaktieren Sie mich nicht", "Bitte kontaktieren Sie mich nicht mehr", "nie wieder",
        "Löschen Sie meine Nummer", "Bitte löschen", "meine Daten löschen", "Nehmen Sie mich aus dem Verteiler",
        "aus dem Verteiler nehmen", "Tragen Sie mich aus", "bitte austragen", "Streichen Sie mich von der Liste", "Lasst mich in Ruhe",
        "Lassen Sie mich in Ruhe", "falsche Nummer", "Kein Interesse", "kein interesse mehr", "Ich will das nicht", "Unterlassen Sie das",
        "Das ist Belästigung", "Belästigen Sie mich nicht", "Spam", "Es reicht", "Schluss damit", "verpiss dich",
        "Ich habe nie zugestimmt", "Ich möchte keine SMS erhalten", "raus aus der liste",
        "Bitte keine sms", "Bitte keine Werbung mehr senden", "ich moechte keine Nachrichten mehr", "hoert auf",
        "abmelden bitte sofort von dieser liste", "Bitte abmelden!", "entfernen Sie meine Nummer",
        "Meine Nummer entfernen", "Bitte entfernen", "ich bin nicht interessiert", "nicht interessiert",
        "DSGVO Löschung", "Einwilligung zurückziehen", "ich ziehe meine Einwilligung zurück",
    ),
    "it": (
        "stop", "STOP SMS", "basta", "Basta messaggi", "basta sms", "disiscrivimi", "disiscrivermi", "Disiscrizione", "disiscrivi",
        "cancellami", "cancellatemi", "Cancellatemi dalla lista", "cancellare il mio numero", "cancella", "annulla", "annullare iscrizione",
        "annullate la mia iscrizione", "rimuovimi", "Rimuovetemi", "rimuovere il mio numero", "toglietemi dalla lista", "toglimi",
        "eliminate il mio numero", "Eliminatemi", "non scrivetemi più", "Non scrivermi più", "non mandatemi più messaggi",
        "Non voglio più ricevere messaggi", "non voglio messaggi", "Non contattatemi", "non mi contattate più", "non inviatemi sms",
        "smettetela", "smettete di scrivermi", "Smettila", "revoco il consenso", "Revoco il mio consenso", "ritiro il consenso",
        "mi oppongo", "disattivare", "disdire", "disdetta", "lasciatemi in pace", "lasciami stare", "numero sbagliato",
        "avete sbagliato numero", "non sono interessato", "non mi interessa", "niente più pubblicità", "niente sms", "spam", "è una molestia",
        "fermate questi messaggi", "ferma", "fermatevi", "finitela", "mai più",
        "non desidero ricevere", "non desidero più comunicazioni", "togliere dalla lista", "disiscrivetemi",
        "mi voglio cancellare", "vorrei disiscrivermi", "non rompete", "niente pubblicità",
        "privacy: cancellate i miei dati",
    ),
    "es": (
        "stop", "alto", "basta", "Basta ya", "baja", "Baja sms", "darme de baja", "Quiero darme de baja", "dame de baja", "denme de baja",
        "Solicito la baja", "cancelar", "cancelar suscripción", "Cancelen mi suscripción", "desuscribir", "desuscribirme",
        "desuscríbanme", "anular suscripción", "no más mensajes", "no mas sms", "No quiero más mensajes", "no quiero recibir publicidad",
        "no me escriban", "No me escribas más", "no me contacten", "No me contacten más", "no me manden mensajes", "no enviar más",
        "no envíen más", "dejen de escribirme", "Deja de enviarme mensajes", "dejad de molestar", "no molesten", "paren",
        "parad ya", "parar", "pare de enviar", "detener", "Detengan los mensajes", "elimínenme", "eliminar mi número", "Borren mi número",
        "bórrame de la lista", "quítenme de la lista", "quítame", "sácame de la lista", "retiro mi consentimiento", "Revoco mi consentimiento",
        "me opongo", "número equivocado", "se equivoca de número", "no me interesa", "no estoy interesado", "nunca más", "déjenme en paz",
        "dejadme tranquila", "spam", "esto es acoso", "suficiente",
        "no quiero", "No deseo recibir mensajes", "eliminar", "dar de baja", "darse de baja", "ya no quiero mensajes",
        "quiero cancelar", "remover", "borrar mis datos", "no autorizo", "para ya", "no enviéis más",
    ),
}  # fmt: skip

ORDINARY = (
    # English
    "ok", "thanks!", "thank you so much", "yes please", "can I come by tomorrow?", "What time do you open?", "Is the blue one in stock?",
    "Do you have size 42", "how much is it", "Who is this?", "My parcel has not arrived", "I love it", "Can I return the scarf?", "LOL",
    "is the sale still on", "the website is slow", "can you call me tomorrow", "I will come on Monday", "starting when?", "restart",
    "stopwatch", "nonstop flight", "weekend plans", "quite nice", "helpful, thanks", "information please", "Great offer, see you soon",
    "Where is your shop", "I bought it yesterday", "Is it open on Sunday?", "What is the code",
    # French
    "merci", "Merci beaucoup", "À demain", "oui", "A quelle heure fermez-vous ?", "Je passerai samedi", "c'est combien",
    "Qui êtes-vous ?", "Réservez m'en une paire", "Peut-on échanger ?", "rappelez-moi", "super", "parfait", "Quelle est l'adresse ?",
    "Avez-vous du 38 ?", "bonne journée", "Est-ce encore en promo ?", "je n'ai pas reçu mon colis", "2 paires", "d'accord",
    # German
    "Danke", "Guten Tag", "Wann haben Sie offen?", "Gibt es das auch in Rot?", "Bitte rufen Sie an", "Endlich!", "Quittung bitte",
    "Vielen Dank für die Nachricht", "Ich komme morgen vorbei", "Wo ist mein Paket?", "Haben Sie Größe 40?", "Alles klar", "Schönes Wochenende",
    # Italian
    "grazie mille", "ciao", "sì", "A che ora aprite?", "Avete la taglia 40?", "Dove siete?", "perfetto", "passo domani", "Quanto costa?",
    "Posso cambiare la maglia?",
    # Spanish
    "gracias", "hola", "¿A qué hora abren?", "¿Tienen la talla 40?", "mañana paso", "perfecto", "¿Cuánto cuesta?", "Muchas gracias",
    "¿Dónde está la tienda?", "vale", "👍", "❤️", "1", "42",
    # Of several
    "Yes I'll take it", "Can you hold one for me?", "I'll be there at 6", "Do you ship to Belgium?",
    "Can I get a refund?", "my order number is 12345", "It was the wrong size", "Perfect, thank you",
    "Where can I park", "Do you take cards", "Nice! I'll send my sister", "Please call me back",
    "Do you have more colours?", "Is there a discount for students", "Could you text me the address",
    "Pouvez-vous m'envoyer l'adresse ?", "Je n'ai plus mon ticket", "C'est trop cher", "Je suis intéressée",
    "J'arrive dans 10 minutes", "Pas mal !", "Jusqu'à quelle heure ?", "Ich bin interessiert",
    "Haben Sie noch mehr Farben?", "Ist das Angebot noch gültig?", "Ich habe die falsche Größe",
    "Wie lange geht der Verkauf", "Das Kleid passt nicht", "Il vestito non va bene", "Ci vediamo domani",
    "Avete altri colori?", "Non ho trovato il negozio", "Mi interessa molto", "Me interesa", "No tengo el ticket",
    "¿Hay más colores?", "No encuentro la tienda", "Quiero comprar dos", "La camisa es pequeña", "non merci",
    "nein danke", "no grazie", "no gracias", "no thanks",
    "Merci", "Thank you so much", "Reservez m'en une paire", "hello", "bonjour", "obrigado", "top", "code?",
    "promo ?", "Is the sale still on", "Can you call me tomorrow", "weekend", "trend", "quittung bitte",
    "information",
)  # fmt: skip

# They wait for a person although they ask for nothing: a word of theirs is one that asks to stop.
CAUTIOUS = (
    "can I stop by the shop tomorrow?", "the bus stops here often", "cancelled train so I am late", "I had to cancel my trip to you",
    "Vous êtes près de l'arrêt de bus ?", "Ich muss den Termin leider absagen, bitte nicht löschen", "la talla más baja por favor, gracias",
    "Le train s'est arrêté, j'arrive", "The end of the week works for me", "Vous n'avez plus de 42 ?",
)  # fmt: skip
