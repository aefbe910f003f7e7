# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The report on every kind of screen, on paper, and without scripts; and for everybody (WCAG 2, AA)."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from chromium import opened, write
from fleet import fleet

from ansible_collections.podwire.cni.plugins.plugin_utils._report.fleet import fleet as report_of, level

# The printable size of A4 in landscape format.
PAPER, PAPER_HEIGHT = 1040, 710
# A test in a browser is slow enough as it is; the first hosts are of all kinds.
OPEN = "[...document.querySelectorAll('details')].slice(0, 14).forEach(part => { part.open = true })"
OPENED = "![...document.querySelectorAll('details.host[open] > noscript')].length"


def printed(page):
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")


# Paper is light.
@pytest.mark.parametrize(
    ("width", "scheme"),
    [("print", "light"), *((width, scheme) for width in (360, 820, 1400) for scheme in ("light", "dark"))],
)
def test_axe_finds_nothing_and_nothing_is_cut(started, address, width, scheme):
    with opened(started, address, color_scheme=scheme) as page:
        page.set_viewport_size({"width": PAPER if width == "print" else width, "height": 900})
        page.evaluate(OPEN)
        page.wait_for_function(OPENED)
        if width == "print":
            printed(page)
        violations = Axe().run(page).response["violations"]
        assert [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in violations] == []
        assert page.evaluate("document.documentElement.scrollWidth") == page.evaluate("innerWidth")
        cut = """[...document.querySelectorAll('main *')].filter(one => one.checkVisibility()
            && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX === 'visible'
            && getComputedStyle(one).display !== 'inline' && !one.closest('svg, .off'))
            .map(one => one.outerHTML.slice(0, 200))"""
        assert page.evaluate(cut) == []
        assert page.complaints == []


def test_on_a_phone_each_host_is_a_card(started, address):
    with opened(started, address) as page:
        page.set_viewport_size({"width": 360, "height": 740})
        row = page.locator("#matrix tbody tr[data-tags~=drift]").first
        assert row.bounding_box()["width"] > 300
        label = (
            "getComputedStyle(document.querySelector('#matrix td[data-label=\"What is wrong\"]'), '::before').content"
        )
        assert page.evaluate(label) == '"What is wrong"'
        lines = [cell.bounding_box()["y"] for cell in row.locator("td:visible").all()]
        assert lines == sorted(set(lines))
        click = page.locator("#matrix thead button", has_text="Host")
        click.click()
        assert page.locator("#matrix th[aria-sort]").text_content() == "Host"


HIDDEN = """[...document.querySelectorAll('.command code b')].filter(one => one.checkVisibility()
    && (one.scrollHeight > one.clientHeight + 1 || getComputedStyle(one).webkitLineClamp !== 'none')
    && getComputedStyle(one).display !== 'inline').map(one => one.textContent)"""
BROKEN = """[...document.querySelectorAll('.command code i')].filter(one => one.checkVisibility()
    && one.getBoundingClientRect().height > 1.8 * parseFloat(getComputedStyle(one).lineHeight))
    .map(one => one.textContent)"""


@pytest.mark.parametrize("where", ["phone", "paper"])
def test_commands_are_there_in_full_and_break_between_words_and_hosts(started, address, where):
    with opened(started, address) as page:
        page.set_viewport_size({"width": 360 if where == "phone" else PAPER, "height": 740})
        if where == "paper":
            printed(page)
        assert page.locator(".command .limit").count() > 20
        assert page.evaluate(HIDDEN) == []
        assert page.evaluate(BROKEN) == []


def test_the_hosts_of_each_command_are_in_sight(started, address):
    # The rest of a command may be cut on a wide screen.
    with opened(started, address) as page:
        for code in page.locator(".causes").first.locator("code").all():
            box, limit = code.bounding_box(), code.locator(".limit").first.bounding_box()
            assert limit["y"] + limit["height"] <= box["y"] + box["height"] + 1
            assert limit["x"] + limit["width"] <= box["x"] + box["width"] + 1


def test_on_a_phone_the_details_of_a_host_take_the_whole_width(started, address):
    with opened(started, address) as page:
        page.set_viewport_size({"width": 360, "height": 740})
        page.locator("#matrix tbody tr[data-tags~=disruptive] th a").first.click()
        section = page.locator("details.host[open]")
        section.locator("table.containers").wait_for()
        cells = section.locator(".body tbody th, .body td").all()
        assert len(cells) > 10 and all(cell.bounding_box()["width"] > 240 for cell in cells)
        # Each cell says what it is, because the heads are hidden.
        told = section.locator(".body td").evaluate_all("all => all.map(one => one.dataset.label || '')")
        assert all(told) and not section.locator(".body thead").first.is_visible()


def test_a_thousand_hosts_have_their_causes_on_one_screen(started, tmp_path):
    with opened(started, write(tmp_path / "report.html", fleet(1000))) as page:
        for cause in page.locator(".causes").first.locator(".cause").all():
            box = cause.bounding_box()
            assert box["y"] + box["height"] / 2 < page.viewport_size["height"]


def test_light_and_dark(started, address):
    colours = {}
    for scheme in ("light", "dark"):
        with opened(started, address, color_scheme=scheme) as page:
            colours[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colours["light"] != colours["dark"]


def test_without_scripts_all_is_there(started, address):
    with opened(started, address, java_script_enabled=False) as page:
        assert page.locator("#matrix tbody tr").count() == 50
        assert not page.locator("#filter").is_visible()
        section = page.locator("details.host[data-level=drift]").first
        section.locator("summary").click()
        assert section.locator("article.step").first.is_visible()


def test_no_background_is_printed_where_a_page_ends(started, address):
    with opened(started, address) as page:
        printed(page)
        assert (
            page.evaluate("getComputedStyle(document.querySelector('.causes')).backgroundColor") == "rgba(0, 0, 0, 0)"
        )
        for heading in ("h2", ".body h4", ".host > summary"):
            assert page.locator(heading).first.evaluate("one => getComputedStyle(one).breakAfter") == "avoid"


def test_printed_are_the_hosts_that_need_something(started, address):
    with opened(started, address) as page:
        printed(page)
        needy = page.locator("details.host:not([data-level=clean])").count()
        assert page.locator("details.host:visible").count() == page.locator("#matrix tbody tr:visible").count() == needy
        assert not page.locator("#filter").is_visible() and not page.locator(".command button").first.is_visible()
        assert page.locator(".printed").is_visible()
        # A printed command is there in full.
        code = page.locator(".now code")
        assert code.evaluate("one => one.scrollHeight <= one.clientHeight + 1")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("details.host[open]").count() == 0


def pages_of(page):
    """Return the size of each printed page."""
    return re.findall(rb"/MediaBox \[0 0 (\d+)\.?\d* (\d+)", page.pdf(prefer_css_page_size=True))


def test_it_is_printed_on_a4_in_landscape_format(started, address):
    with opened(started, address) as page:
        assert set(pages_of(page)) == {(b"841", b"594")}


def test_five_hosts_are_a_page_of_summary_and_few_of_details(started, tmp_path):
    records = fleet(50)
    needy = [host["host"] for host in report_of(records)["hosts"] if level(host) != "clean"]
    with opened(started, write(tmp_path / "report.html", [one for one in records if one["host"] in needy[:5]])) as page:
        page.set_viewport_size({"width": PAPER, "height": 720})
        printed(page)
        assert page.locator("details.host[open]").count() == 5
        sections = page.locator(".sections")
        assert sections.evaluate("one => getComputedStyle(one).breakBefore") == "page"
        assert sections.bounding_box()["y"] < PAPER_HEIGHT
        assert page.locator(".top, .now, .causes, #matrix").evaluate_all("all => all.length") == 4
        assert len(pages_of(page)) <= 5
