"""The invented chain of the demo as constants: countries, shops, and first and last names of customers."""

from dataclasses import dataclass
from typing import NamedTuple

from regulars.sales.model import Currency

# The demo has tickets of two years.
DAYS = 730


class NumberBlock(NamedTuple):
    """Phone numbers that begin with the prefix and have this many more digits."""

    prefix: str
    digits: int

    @property
    def size(self) -> int:
        return int(10**self.digits)


@dataclass(frozen=True, slots=True)
class DemoCountry:
    code: str
    currency: Currency
    vat_percent: int
    # Numbers that belong to no real person, used in this order: first those that the country reserves for films and
    # examples, then numbers of the right form that are assigned to no operator.
    numbers: tuple[NumberBlock, ...]
    # The language of the country's shops and customers.
    language: str
    opens_on_sunday: bool
    # Prices in the country's currency, in percent of the euro prices.
    price_percent: int
    first_names: tuple[str, ...]
    last_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shop:
    external_id: str
    name: str
    country: str
    street: str
    postal_code: str
    city: str
    region: str
    # The shop's share of all tickets, relative to the weights of the other shops.
    weight: int
    # Days between the first day of the demo and the opening of the shop.
    opens_after_days: int = 0


def _split(names: str) -> tuple[str, ...]:
    return tuple(names.split())


COUNTRIES = {
    country.code: country
    for country in (
        DemoCountry(
            code="FR",
            currency="EUR",
            vat_percent=20,
            numbers=(NumberBlock("+3363998", 4), NumberBlock("+3370", 7)),
            language="fr",
            opens_on_sunday=False,
            price_percent=100,
            first_names=_split("Camille Léa Louis Chloé Hugo Manon Jules Inès Arthur Zoé Nadia"),
            last_names=_split("Martin Bernard Petit Durand Leroy Moreau Simon Laurent Benali Roux"),
        ),
        DemoCountry(
            code="BE",
            currency="EUR",
            vat_percent=21,
            numbers=(NumberBlock("+3299", 7),),
            language="fr",
            opens_on_sunday=False,
            price_percent=102,
            first_names=_split("Emma Noor Lucas Liam Olivia Arthur Louise Finn Marie Victor"),
            last_names=_split("Peeters Janssens Maes Jacobs Mertens Willems Claes Goossens Dubois"),
        ),
        DemoCountry(
            code="DE",
            currency="EUR",
            vat_percent=19,
            numbers=(
                NumberBlock("+4917139200", 2),
                NumberBlock("+49176040690", 2),
                *(NumberBlock(f"+49{area}", 3) for area in (3023125, 4066969, 6990009, 8999998, 2214710)),
                NumberBlock("+4910", 9),
            ),
            language="de",
            opens_on_sunday=False,
            price_percent=98,
            first_names=_split("Anna Lukas Mia Jonas Lena Felix Marie Paul Emre Sophie Jürgen"),
            last_names=_split("Müller Schmidt Weber Fischer Wagner Becker Hoffmann Koch Kaya"),
        ),
        DemoCountry(
            code="CH",
            currency="CHF",
            vat_percent=8,
            numbers=(NumberBlock("+4199", 7),),
            language="de",
            opens_on_sunday=False,
            price_percent=125,
            first_names=_split("Nina Luca Lara Noah Elena Matteo Sofia Leon Giulia Reto Ursina"),
            last_names=_split("Meier Keller Baumann Frei Bernasconi Favre Rochat Huber Zürcher"),
        ),
        DemoCountry(
            code="GB",
            currency="GBP",
            vat_percent=20,
            numbers=(
                NumberBlock("+447700900", 3),
                *(NumberBlock(f"+44{area}4960", 3) for area in (113, 114, 115, 116, 117, 118, 121, 131, 141, 151, 161)),
                NumberBlock("+442079460", 3),
                NumberBlock("+4461", 8),
            ),
            language="en",
            opens_on_sunday=True,
            price_percent=88,
            first_names=_split("Olivia George Amelia Harry Isla Jack Ava Oscar Priya Siân Mohammed"),
            last_names=_split("Smith Jones Taylor Brown Patel Evans Walker O'Brien Khan Hughes"),
        ),
    )
}

SHOPS = (
    Shop("PAR-OPERA", "Paris Opéra", "FR", "12 rue de la Paix", "75002", "Paris", "Île-de-France", 12),
    Shop("PAR-MARAIS", "Paris Marais", "FR", "31 rue des Francs-Bourgeois", "75004", "Paris", "Île-de-France", 10),
    Shop("PAR-TERNES", "Paris Ternes", "FR", "5 avenue des Ternes", "75017", "Paris", "Île-de-France", 7),
    Shop("LYO-BELLE", "Lyon Bellecour", "FR", "8 rue Victor Hugo", "69002", "Lyon", "Auvergne-Rhône-Alpes", 8),
    Shop("LYO-PARTD", "Lyon Part-Dieu", "FR", "17 rue du Docteur Bouchut", "69003", "Lyon", "Auvergne-Rhône-Alpes", 6),
    Shop("MRS-PRADO", "Marseille Prado", "FR", "41 avenue du Prado", "13006", "Marseille", "Provence", 6),
    Shop("BOD-INTEN", "Bordeaux Intendance", "FR", "20 cours de l'Intendance", "33000", "Bordeaux", "Aquitaine", 5),
    Shop("LIL-BETHU", "Lille Béthune", "FR", "44 rue de Béthune", "59800", "Lille", "Hauts-de-France", 5),
    Shop("TLS-CAPIT", "Toulouse Capitole", "FR", "3 rue Saint-Rome", "31000", "Toulouse", "Occitanie", 5),
    Shop("NTE-CREBI", "Nantes Crébillon", "FR", "9 rue Crébillon", "44000", "Nantes", "Pays de la Loire", 4),
    Shop(
        "STR-GRAND",
        "Strasbourg Grandes Arcades",
        "FR",
        "15 rue des Grandes Arcades",
        "67000",
        "Strasbourg",
        "Alsace",
        4,
    ),
    Shop("BRU-NEUVE", "Bruxelles Neuve", "BE", "72 rue Neuve", "1000", "Bruxelles", "Brussels", 5),
    Shop("LGG-ILE", "Liège Île", "BE", "18 rue Pont d'Île", "4000", "Liège", "Wallonie", 5),
    Shop("NAM-FER", "Namur Fer", "BE", "33 rue de Fer", "5000", "Namur", "Wallonie", 3),
    Shop("BER-MITTE", "Berlin Mitte", "DE", "Friedrichstraße 101", "10117", "Berlin", "Berlin", 7),
    Shop("BER-KUDAM", "Berlin Kurfürstendamm", "DE", "Kurfürstendamm 24", "10719", "Berlin", "Berlin", 5),
    Shop("HAM-MONCK", "Hamburg Mönckeberg", "DE", "Mönckebergstraße 7", "20095", "Hamburg", "Hamburg", 5),
    Shop("MUC-KAUFI", "München Kaufinger", "DE", "Kaufingerstraße 15", "80331", "München", "Bayern", 6),
    Shop("CGN-SCHIL", "Köln Schildergasse", "DE", "Schildergasse 65", "50667", "Köln", "Nordrhein-Westfalen", 4),
    Shop("ZRH-BAHNH", "Zürich Bahnhofstrasse", "CH", "Bahnhofstrasse 73", "8001", "Zürich", "Zürich", 5),
    Shop("BRN-MARKT", "Bern Marktgasse", "CH", "Marktgasse 42", "3011", "Bern", "Bern", 4),
    Shop("BSL-FREIE", "Basel Freie Strasse", "CH", "Freie Strasse 36", "4001", "Basel", "Basel-Stadt", 2),
    Shop("LDN-REGEN", "London Regent Street", "GB", "180 Regent Street", "W1B 5TD", "London", "Greater London", 10),
    Shop("LDN-KINGS", "London King's Road", "GB", "64 King's Road", "SW3 4UD", "London", "Greater London", 6),
    Shop("MAN-ARNDA", "Manchester Arndale", "GB", "22 Market Street", "M1 1PT", "Manchester", "Greater Manchester", 5),
    Shop("EDI-PRINC", "Edinburgh Princes Street", "GB", "97 Princes Street", "EH2 2ER", "Edinburgh", "Scotland", 4),
    Shop("BRS-CABOT", "Bristol Cabot Circus", "GB", "11 Broadmead", "BS1 3DX", "Bristol", "Bristol", 6, 360),
)
