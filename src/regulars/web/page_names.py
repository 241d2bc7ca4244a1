"""The names and everyday words by which the search finds pages and settings, beside those of the navigation."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class PageName(NamedTuple):
    """A page, or a setting on a page. A path below the organization, or that of a page of the person's own."""

    label: str
    path: str
    # What people call it, without the words of the label.
    words: str = ""


# Of the entries of the navigation, which has their names.
ENTRY_WORDS: Final[Mapping[str, str]] = {
    "/": "overview dashboard start today",
    "/first-steps": "getting started begin help set up",
    "/customers": "people profiles contacts shoppers clients",
    "/segments": "audiences groups target lists",
    "/consent": "opt in opt out subscribers permission gdpr privacy unsubscribed",
    "/tickets": "sales receipts purchases returns orders transactions",
    "/collisions": "duplicates doubles mismatch",
    "/stores": "shops branches places locations",
    "/journeys": "automations flows sequences workflows welcome",
    "/campaigns": "sms blast newsletter mailing promotion",
    "/messages": "texts sms sent history delivered failed conversations",
    "/simulator": "phone try preview",
    "/analyse/sales": "revenue turnover income report reports chart statistics",
    "/analyse/customers": "new returning loyal cohorts rfm repeat report reports statistics",
    "/analyse/products": "articles items best sellers basket report reports statistics",
    "/analyse/stores": "shops ranking leaderboard compare report reports statistics",
    "/analyse/attribution": "results lift return on investment roi effect report reports",
    "/analyse/explore": "question measure dimension pivot own report chart",
    "/imports": "upload file csv excel spreadsheet",
    "/attributes": "fields columns custom data types values",
    "/products": "fields columns articles items catalog types values",
    "/keys": "token password secret access developer integration",
    "/webhooks": "events callbacks endpoints notifications developer integration",
    "/requests": "api calls errors failed debug developer",
    "/reference": "documentation docs openapi manual developer",
    "/settings/organization": "company brand name web address country slug",
    "/settings/team": "people users members colleagues roles rights permissions",
    "/settings/texts": "sms gateway test text price cost",
    "/settings/attribution": "window windows days click",
    "/settings/server": "public address url domain host https short links administrator",
    "/settings/audit": "history changes who did security trail",
}
# Pages without an entry in the navigation, and settings that are a part of a page.
OTHER_NAMES: Final = (
    PageName("Inbox", "/messages/inbox", "replies answers conversations unread"),
    PageName("New segment", "/segments/new", "create add make build audience"),
    PageName("New journey", "/journeys/new", "create add make build automation flow"),
    PageName("New campaign", "/campaigns/new", "create add make write send sms"),
    PageName("Approval of campaigns", "/campaigns/approval", "approve second person cost limit budget"),
    PageName("Phone numbers", "/consent/numbers", "mobile subscribers opt in opt out list"),
    PageName("Attributed tickets", "/analyse/attribution/tickets", "credited purchases sales of texts"),
    PageName("Connect your systems", "/first-steps/developer", "till developer api curl key address integration"),
    PageName("New API key", "/keys/new", "create add make token"),
    PageName("New webhook endpoint", "/webhooks/new", "create add make events"),
    PageName("Deliveries of webhooks", "/webhooks/deliveries", "sent events failed replay"),
    PageName("Events of webhooks", "/webhooks/events", "types payload example"),
    PageName("Check a signature", "/webhooks/check", "webhook verify secret"),
    PageName("Invite a person", "/settings/team/invite", "add user member colleague team"),
    PageName("Time zone", "/settings/organization", "clock hours utc local time"),
    PageName("Numbers and dates", "/settings/organization", "language locale format currency"),
    PageName("Default country", "/settings/organization", "phone prefix"),
    PageName(
        "Hours, caps and notices",
        "/settings/texts/rules",
        "sending quiet night times when allowed sunday holidays countries frequency limit opt-out notice stop",
    ),
    PageName("Frequency caps", "/settings/texts/rules#ca", "limit how often many per day week maximum"),
    PageName("Text provider", "/settings/texts/provider", "twilio gateway sms account sender brand"),
    PageName("Pause all texts", "/settings/texts/hold", "stop halt hold emergency"),
    PageName("Release all texts", "/settings/texts/release", "resume continue unpause hold"),
    PageName("Global holdout", "/settings/texts/holdout", "control group test measure"),
    PageName("Your number for test texts", "/settings/texts/number", "my phone mobile sms"),
    PageName("Your account", "/account", "profile name my details"),
    PageName("Password", "/account", "change new sign in login"),
    PageName("Theme", "/account", "dark light mode colours night"),
    PageName("Second factor", "/account/second-factor", "2fa two-factor authenticator security codes login"),
    PageName("Your sessions", "/account/sessions", "signed in devices browsers sign out log out"),
    PageName("Your organizations", "/organizations", "change switch company"),
    PageName("Keyboard shortcuts", "/shortcuts", "keys help hotkeys"),
)
