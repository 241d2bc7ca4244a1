"""The pages of the inbox: customers' replies without a keyword, which a user answers or treats as an opt-out."""

from functools import partial
from typing import Any, Final

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.accounts.users import find_emails
from regulars.inbox import decide as deciding
from regulars.inbox.find import find_reply, list_undecided_replies, read_conversation
from regulars.kit.db import Tx
from regulars.kit.ids import REPLY, TEXT, ById, new_uuid
from regulars.profiles.find import find_profile
from regulars.texts.errors import MessagingError
from regulars.texts.find import find_last_answers, list_responses
from regulars.texts.in_flight import wait_for_texts_in_flight
from regulars.texts.labels import DECISIONS
from regulars.texts.model import ANSWER_WITHIN, ANSWERS_OUTSIDE_CAP_MAX, KEYWORD_MEANINGS, ReplyRow
from regulars.texts.pages.message_view import INBOX, MessageView, load_texting_of
from regulars.texts.pages.plain_text import ONCE, SENT_BEFORE, read_once, read_plain_text
from regulars.texts.request import send_past_cap
from regulars.texts.text_origins import OriginFinders, find_origins
from regulars.texts.text_rows import find_authors
from regulars.web.access import Action
from regulars.web.errors import PageNotFound
from regulars.web.form import FormState
from regulars.web.listing import make_page, read_view
from regulars.web.render import redirect, render, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit

MESSAGES_SHOWN_MAX: Final = 20
ANSWER_QUEUED: Final = "Answer queued. This page shows when it is sent, or why not."


async def show_inbox(visit: Visit) -> Response:
    view = read_view(visit, "inbox", INBOX)
    async with visit.database.reading() as tx:
        page = make_page(view, await list_undecided_replies(tx, visit.organization_id, view.request))
        answers = await find_last_answers(tx, visit.organization_id, [reply.id for reply in page.rows])
        texting = await load_texting_of(tx, visit)
    values: dict[str, Any] = {"answers": answers, "is_on_hold": texting.is_on_hold}
    return render(visit, "inbox/inbox.html", view=view, page=page, shown=MessageView(visit), **values)


async def _find_reply_in_path(tx: Tx, visit: Visit) -> ReplyRow:
    reply_id = REPLY.decode(visit.references[0])
    reply = None if reply_id is None else await find_reply(tx, visit.organization_id, reply_id)
    if reply is None:
        raise PageNotFound(
            "There is no reply with this ID. We store replies for 25 months, or until the person is erased."
        )
    return reply


async def show_reply(finders: OriginFinders, visit: Visit, form: FormState | None = None) -> Response:
    """Show a reply, with the form to answer it, which may be refused."""
    async with visit.database.reading() as tx:
        reply = await _find_reply_in_path(tx, visit)
        messages = await read_conversation(tx, visit.organization_id, reply.number_hash, limit=MESSAGES_SHOWN_MAX)
        origins = await find_origins(tx, visit.organization_id, finders, [message.text for message in messages])
        answers = await list_responses(tx, visit.organization_id, reply.id)
        authors = await find_authors(tx, visit.organization_id, [answer.id for answer in answers])
        emails = await find_emails(tx, authors.values())
        texting = await load_texting_of(tx, visit)
        customer = None
        if reply.profile_id is not None:
            customer = await find_profile(tx, visit.organization_id, ById(reply.profile_id))
    values: dict[str, Any] = {
        "reply": reply,
        "identifier": REPLY.encode(reply.id),
        "messages": messages,
        "origins": origins,
        "answers": answers,
        "authors": {text_id: emails.get(author_id) for text_id, author_id in authors.items()},
        "is_on_hold": texting.is_on_hold,
        "is_answerable": reply.meaning not in KEYWORD_MEANINGS,
        "answers_outside_cap_max": ANSWERS_OUTSIDE_CAP_MAX,
        "answer_within_h": int(ANSWER_WITHIN.total_seconds()) // 3600,
        "customer": customer,
        "shown": MessageView(visit),
        "decisions": DECISIONS,
    }
    form = form or FormState()
    # A form that was refused keeps its id, so that it cannot send twice.
    form.values[ONCE] = form.value(ONCE) or str(new_uuid())
    return render_form(visit, "inbox/reply.html", form, **values)


async def ask_to_withdraw(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        reply = await _find_reply_in_path(tx, visit)
    return render(visit, "inbox/withdraw.html", reply=reply, shown=MessageView(visit), form=FormState())


async def withdraw(finders: OriginFinders, visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        number_hash = (await _find_reply_in_path(tx, visit)).number_hash
    response = await _decide(finders, visit, is_stop=True, done="Number opted out. It gets no more texts.")
    # As for every withdrawal, the response waits until no text to the number is in flight.
    await wait_for_texts_in_flight(visit.database, visit.organization_id, [number_hash])
    return response


async def keep_consent(finders: OriginFinders, visit: Visit) -> Response:
    return await _decide(finders, visit, is_stop=False, done="The number stays opted in.")


async def _decide(finders: OriginFinders, visit: Visit, *, is_stop: bool, done: str) -> Response:
    with FormState(again=partial(show_reply, finders)).refusing("decision", MessagingError):
        async with visit.database.transaction() as tx:
            reply = await _find_reply_in_path(tx, visit)
            await deciding.decide(
                tx,
                visit.organization_id,
                reply.id,
                is_stop=is_stop,
                decided_by=visit.user.email,
                texting=await load_texting_of(tx, visit),
            )
            await record_act(tx, visit, "reply.withdraw" if is_stop else "reply.not_stop", REPLY.encode(reply.id))
    return redirect(visit, visit.url(INBOX), done=done)


async def answer(finders: OriginFinders, visit: Visit) -> Response:
    form = FormState(visit.form, again=partial(show_reply, finders))
    text = read_plain_text(form, "words")
    once = read_once(form)
    form.check()
    with form.refusing("words", MessagingError):
        async with visit.database.transaction() as tx:
            reply = await _find_reply_in_path(tx, visit)
            placed = await deciding.answer(
                tx,
                visit.organization_id,
                reply.id,
                once=once,
                text=text,
                author_id=visit.user.id,
                texting=await load_texting_of(tx, visit),
            )
            if placed.is_new:
                await record_act(tx, visit, "reply.answer", REPLY.encode(reply.id))
    return redirect(
        visit, visit.url(INBOX, REPLY.encode(reply.id)), done=ANSWER_QUEUED if placed.is_new else SENT_BEFORE
    )


async def send_anyway(finders: OriginFinders, visit: Visit) -> Response:
    """Send an answer that was skipped for the frequency cap, and for nothing else."""
    text_id = TEXT.decode(visit.references[1])
    with FormState(again=partial(show_reply, finders)).refusing("decision", MessagingError):
        async with visit.database.transaction() as tx:
            reply = await _find_reply_in_path(tx, visit)
            answers = await list_responses(tx, visit.organization_id, reply.id)
            if text_id is None or text_id not in {answer.id for answer in answers}:
                raise PageNotFound("This reply has no answer with this ID.")
            await send_past_cap(tx, visit.organization_id, text_id)
            await record_act(tx, visit, "text.send_anyway", TEXT.encode(text_id))
    return redirect(visit, visit.url(INBOX, REPLY.encode(reply.id)), done=ANSWER_QUEUED)


def pages(*, origins: OriginFinders) -> tuple[Page, ...]:
    """`origins` has the functions that find the journeys and campaigns that requested texts, by kind."""
    reply_path, write = f"{INBOX}/{{reply}}", partial(Form, needs=Action.WRITE_TEXTS, harm=Harm.CHANGES)
    return (
        Page(path=INBOX, needs=Action.READ, handle=show_inbox),
        Page(path=reply_path, needs=Action.READ, handle=partial(show_reply, origins)),
        Page(path=f"{reply_path}/withdraw", needs=Action.WRITE_TEXTS, handle=ask_to_withdraw),
        write(path=f"{reply_path}/withdraw", handle=partial(withdraw, origins)),
        write(path=f"{reply_path}/not-a-withdrawal", handle=partial(keep_consent, origins)),
        write(path=f"{reply_path}/answer", handle=partial(answer, origins)),
        write(path=f"{reply_path}/answers/{{text}}/send-anyway", handle=partial(send_anyway, origins)),
    )
