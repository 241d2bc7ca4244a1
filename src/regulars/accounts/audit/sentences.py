"""Describe an act of the audit log in a sentence, with a link to its subject."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from regulars.accounts.model import Act, Member
from regulars.kit.ids import IdKind
from regulars.web.format import short_id

USER: Final = IdKind("user", "user_")
# `{}` is the subject; a sentence without it does not name the subject.
SENTENCES: Final = {
    "analyse.export": "exported figures as {}",
    "attribution.recompute": "recomputed which sales are attributed to texts",
    "attribution.windows": "changed the attribution windows",
    "audit.export": "exported the audit log",
    "campaign.approve": "approved the campaign {}",
    "campaign.approval": "changed the number of recipients above which a campaign needs approval",
    "campaign.archive": "archived the campaign {}",
    "campaign.cancel": "cancelled the campaign {}",
    "campaign.create": "created the campaign {}",
    "campaign.export": "exported the recipients of the campaign {}",
    "campaign.pause": "paused the campaign {}",
    "campaign.proof": "exported the proof of consent for the campaign {}",
    "campaign.resume": "resumed the campaign {}",
    "campaign.schedule": "scheduled the campaign {}",
    "campaign.send": "sent the campaign {}",
    "campaign.update": "changed the campaign {}",
    "collision.decide": "decided about the conflicting tickets {}",
    "collisions.export": "exported the list of conflicting tickets",
    "consent.certificate": "downloaded the consent certificate of {}",
    "consent.export": "exported the list of phone numbers",
    "customer.erase": "erased the customer {}",
    "customer.export": "exported the data of the customer {}",
    "customers.export": "exported the list of customers",
    "deliveries.export": "exported the list of webhook deliveries",
    "demo.ask": "started a demo",
    "demo.fill": "loaded sample data into {}",
    "first_steps.dismiss": "hid the first steps",
    "import.run": "imported a file of {}",
    "journey.activate": "activated the journey {}",
    "journey.archive": "archived the journey {}",
    "journey.backtest": "ran a backtest of the journey {}",
    "journey.create": "created the journey {}",
    "journey.discard_draft": "discarded the draft of the journey {}",
    "journey.edit": "edited the draft of the journey {}",
    "journey.end": "ended the journey {}",
    "journey.pause": "paused the journey {}",
    "journey.resume_run": "resumed the run {}",
    "journey.save_version": "saved a version of the journey {}",
    "key.create": "created the API key {}",
    "key.revoke": "revoked the API key {}",
    "member.invite": "invited {}",
    "member.join": "joined as {}",
    "member.link_withdraw": "revoked the link of {}",
    "member.password_link": "created a password link for {}",
    "member.remove": "removed {}",
    "member.role": "changed the role of {}",
    "member.sign_out": "signed out {} everywhere",
    "messages.export": "exported the list of texts",
    "organization.change": "changed the organization {}",
    "organization.create": "created the organization {}",
    "organization.recount": "started to count all totals again",
    "password.by_link": "set a password with a one-time link",
    "password.change": "changed their password",
    "reply.answer": "answered the reply {}",
    "reply.not_stop": "decided that the reply {} is not an opt-out",
    "reply.receive": "entered the reply {}",
    "reply.withdraw": "decided that the reply {} is an opt-out",
    "second_factor.disable": "turned off the second factor of {}",
    "second_factor.enable": "turned on their second factor",
    "second_factor.new_recovery_codes": "created new recovery codes",
    "segment.create": "created the segment {}",
    "segment.delete": "deleted the segment {}",
    "segment.export": "exported the customers of the segment {}",
    "segment.rebuild": "started to count all segments again",
    "segment.update": "saved a version of the segment {}",
    "server.address": "changed the public address of the server",
    "session.sign_in": "signed in",
    "session.sign_in_failed": "failed to sign in",
    "simulator.reply": "wrote a reply in the simulator",
    "stores.export": "exported the list of stores",
    "text.resend": "sent the text {} again",
    "text.send_anyway": "sent the answer {} past the frequency cap",
    "text.send": "sent the text {}",
    "text.test": "sent a test text",
    "text.test_code": "requested a code for test texts",
    "text.test_number": "verified a number for test texts",
    "texts.caps": "changed the frequency caps",
    "texts.hold": "paused all texts",
    "texts.holdout": "changed the global holdout",
    "texts.hours": "changed the sending hours for {}",
    "texts.notice": "changed the opt-out notice for {}",
    "texts.provider": "changed the SMS provider",
    "texts.release": "resumed all texts",
    "texts.rules": "changed the sending rules",
    "texts.sender": "changed the sender and price of texts to {}",
    "tickets.export": "exported the list of tickets",
    "user.disable": "disabled the account of {}",
    "user.enable": "enabled the account of {}",
    "view.delete": "deleted the saved view {}",
    "view.save": "saved the view {}",
    "webhook.approve": "approved the webhook endpoint {}",
    "webhook.change": "changed the webhook endpoint {}",
    "webhook.create": "created the webhook endpoint {}",
    "webhook.delete": "deleted the webhook endpoint {}",
    "webhook.disable": "disabled the webhook endpoint {}",
    "webhook.draft": "drafted the webhook endpoint {}",
    "webhook.enable": "enabled the webhook endpoint {}",
    "webhook.ping": "sent a test event to the webhook endpoint {}",
    "webhook.replay": "sent the delivery {} again",
    "webhook.replay_range": "sent deliveries to the webhook endpoint {} again",
    "webhook.reveal": "viewed the secret of the webhook endpoint {}",
    "webhook.rotate": "created a new secret for the webhook endpoint {}",
    "webhook.withdraw": "deleted the draft of the webhook endpoint {}",
}
# The page of a subject, by the prefix of its id.
PATHS: Final = {
    "cmp_": "/campaigns",
    "dlv_": "/webhooks/deliveries",
    "jrn_": "/journeys",
    "key_": "/keys",
    "prof_": "/customers",
    "rpl_": "/messages/inbox",
    "seg_": "/segments",
    "sub_": "/consent/numbers",
    "txt_": "/messages",
    "wh_": "/webhooks",
}
# After these acts the subject has no page any more.
_WITHOUT_PAGE: Final = frozenset({"customer.erase", "segment.delete", "webhook.delete", "webhook.withdraw"})


class Sentence(NamedTuple):
    """An act in words: `{who} {before}{subject}{after}`. `path` is the page of the subject, below the organization."""

    who: str
    before: str
    subject: str
    after: str
    path: str | None


def describe(act: Act, members: Mapping[str, Member]) -> Sentence:
    """Describe an act; `members` are the current members of the organization, by email address."""
    actor = members.get(act.actor)
    sentence = SENTENCES.get(act.act, f"did {act.act} to {{}}")
    before, has_subject, after = sentence.partition("{}")
    if not has_subject:
        return Sentence(actor.name if actor else act.actor, before, "", "", None)
    member = members.get(act.subject)
    values = {**(act.before or {}), **(act.after or {})}
    name = member.name if member else values.get("name") or values.get("url")
    path = f"/settings/team/{USER.encode(member.user_id)}" if member else _find_path(act)
    # Email addresses and names of files stay whole.
    subject = act.subject if "@" in act.subject or "." in act.subject else short_id(act.subject)
    return Sentence(actor.name if actor else act.actor, before, str(name or subject), after, path)


def _find_path(act: Act) -> str | None:
    if act.act in _WITHOUT_PAGE:
        return None
    return next((f"{path}/{act.subject}" for prefix, path in PATHS.items() if act.subject.startswith(prefix)), None)
