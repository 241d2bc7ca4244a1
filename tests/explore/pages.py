"""A page as a browser takes it: its elements, its ids, and everything it would load or lead to."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

import httpx
from tests.support.client import get_url
from tests.support.server import Server

LOADING = {"src", "href", "action", "srcset", "data", "poster", "formaction", "background"}


@dataclass
class Page(HTMLParser):
    text: str
    tags: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    attributes: set[str] = field(default_factory=set)
    blocks: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.is_in_block = False
        self.feed(self.text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value)
            if name in LOADING:
                self.links.append(value)
        if tag == "pre":
            self.is_in_block = True
            self.blocks.append("")

    def handle_endtag(self, tag):
        if tag == "pre":
            self.is_in_block = False

    def handle_data(self, data):
        if self.is_in_block:
            self.blocks[-1] += data


def get(server: Server, path: str) -> httpx.Response:
    return get_url(server.url + path)


def read(server: Server, path: str) -> Page:
    response = get(server, path)
    assert response.status_code == 200
    return Page(response.text)
