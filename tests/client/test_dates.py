"""The reader of feed dates: every form and zone against the time it was written from; nothing is guessed."""

from __future__ import annotations

import calendar
import time
import zoneinfo
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo

import feedparser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator_client.dates import ZONES, parse_feed_date, time_zone, with_parsed_date

MEANT = datetime(2026, 3, 5, 14, 7, 9, tzinfo=UTC)
SECONDS = int(MEANT.timestamp())
SHANGHAI, BERLIN = ZoneInfo("Asia/Shanghai"), ZoneInfo("Europe/Berlin")

# strftime forms of a local time; the zone is put in for {}.
FORMS = (
    "%a, %d %b %Y %H:%M:%S {}",
    "%d %B %Y %H:%M:%S {}",
    "%A, %d-%b-%y %H:%M:%S {}",
    "%a, %d %b %y %H:%M:%S {}",
    "%a, %d %b %Y %I:%M:%S %p {}",
    "jeu., %d %b %Y %H:%M:%S {}",
    "чт,%d %b %Y %H:%M:%S {}",
    "%b %d, %Y %I:%M:%S %p {}",
    "%B %d, %Y at %H:%M:%S {}",
    "%a %b %d %Y %H:%M:%S {}",
    "%Y-%m-%d %H:%M:%S {}",
    "%Y-%m-%dT%H:%M:%S{}",
    "%Y/%m/%d %H:%M:%S {}",
    "%G-W%V-%uT%H:%M:%S{}",
)
READ: tuple[object, ...] = (
    SECONDS,
    float(SECONDS),
    SECONDS * 1000,
    str(SECONDS),
    f"{SECONDS}000",
    f" {SECONDS}.0 ",
    time.gmtime(SECONDS),
    list(time.gmtime(SECONDS)),
    time.localtime(SECONDS),
    Decimal(SECONDS),
    [SECONDS],
    ["Thu, 5 Mar 2026 14:07:09 GMT"],
    MEANT,
    MEANT.astimezone(BERLIN),
    "Thu, 5 Mar 2026 14:07:09 GMT",
    b"Thu, 5 Mar 2026 14:07:09 GMT",
    "Thu, 5 Mar 2026 2:07:09 p. m. GMT",
    "Thu Mar 5 14:07:09 UTC 2026",
    "Thu Mar 05 2026 15:07:09 GMT+0100 (Mitteleuropäische Normalzeit)",
    "2026-03-05 15:07:09 +0100 CET",
    "2026-03-05 22:07:09 +0800 CST",
    "2026-03-05T15:07:09+01:00[Europe/Berlin]",
    "20260305T140709Z",
    "2026-03-05t14:07:09,000z",
    "2026-03-05T14:07:09.000000000Z",
    "２０２６-０３-０５ 14:07:09\u00a0Z",
    "2026-03-05 09:07:09 \u221205:00",
    "\u200e2026-03-05 14:07:09 UTC",
)
UNREAD: tuple[object, ...] = (
    *(
        "",
        "yesterday",
        "2 hours ago",
        "14:07",
        "2026",
        "2026-03",
        "Thu",
        None,
        True,
        float("nan"),
        {},
        [],
    ),
    *(0, 1, 20260305, -1, 10**15, "20260305140709", "9" * 5000, [2026, 3, 5], object()),
    "Thu, 5 Mar 2026 14:07:09 XYZT",
    "Thu, 5 Mar 2026 14:07:09 A",
    "Thu, 5 Mar 2026 14:07:09 GMT or so",
    "Thu, 5 Mar 2026 14:07:09 +02:00 GMT",
    "Thu, 5 Mar 2026 14:07:09 +2500",
    "Thu, 5 Mar 2026 14:07:09 +530",
    "Thu, 5 Mar 2026 14:07:09 PM GMT",
    "Thu, 5 Mar 2026 14:61:09 GMT",
    "Thu, 5 Mar 2026 24:00:01 GMT",
    "30 Feb 2026 14:07:09 GMT",
    "5 Foo 2026 14:07:09 GMT",
    "3/5/2026 14:07 GMT",
    "05-03-2026 14:07 GMT",
    "2026-03-05T14:07:09ZZ",
    "2026-03-05Z",
    "2026-03-05T14Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-10:00",
)
BY_EMAIL_UTILS = (0, 1, 3)  # forms that the standard library reads as well
times = st.datetimes(datetime(1971, 1, 1), datetime(2049, 12, 31)).map(
    lambda found: found.replace(microsecond=0, tzinfo=UTC)
)
minutes = st.integers(-11 * 4, 14 * 4).map(lambda quarters: quarters * 15)


def spellings(offset: timedelta) -> list[str]:
    """The ways in which feeds write an offset."""
    total = int(offset.total_seconds()) // 60
    sign, (hours, rest) = "-" if total < 0 else "+", divmod(abs(total), 60)
    written = [f"{sign}{hours:02}{rest:02}", f"{sign}{hours:02}:{rest:02}"]
    written += [f"{prefix}{offset}" for prefix in ("GMT", "UTC", "UTC ") for offset in written]
    written.append(f"{written[0]} (somewhere)")
    return written + ([f"{sign}{hours:02}", f"GMT{sign}{hours}"] if not rest else [])


@given(times, minutes, st.sampled_from(FORMS), st.data())
def test_every_form_with_every_offset_is_the_time_it_was_written_from(
    meant: datetime, east: int, form: str, data: st.DataObject
) -> None:
    """In every spelling of the offset."""
    offset = timedelta(minutes=east)
    zone = data.draw(st.sampled_from(spellings(offset)))

    assert parse_feed_date(meant.astimezone(timezone(offset)).strftime(form).format(zone)) == meant


@given(times, st.sampled_from(sorted(ZONES)), st.sampled_from(FORMS))
def test_every_form_with_every_named_zone_is_the_time_it_was_written_from(
    meant: datetime, name: str, form: str
) -> None:
    """Also in asctime's order, with the year last."""
    local = meant.astimezone(timezone(timedelta(hours=ZONES[name])))

    for order in (form, "%a %b %d %H:%M:%S {} %Y"):
        assert parse_feed_date(local.strftime(order).format(name)) == meant


@given(times, minutes, st.sampled_from(BY_EMAIL_UTILS))
def test_offsets_of_rfc_822_agree_with_other_readers(meant: datetime, east: int, form: int) -> None:
    """email.utils, and feedparser where it reads the form; it takes 89 for 2089."""
    zone = timezone(timedelta(minutes=east))
    text = meant.astimezone(zone).strftime(FORMS[form] + "%z").format("")

    assert parse_feed_date(text) == parsedate_to_datetime(text)
    by_feedparser = feedparser.datetimes._parse_date(text)
    if by_feedparser is not None and form != BY_EMAIL_UTILS[-1]:
        assert calendar.timegm(by_feedparser) == meant.timestamp()


def test_named_zones_have_one_meaning_in_the_zone_database() -> None:
    """PST (also Manila) and CDT (also Havana) are defined by RFC 822."""
    meanings: dict[str, set[float]] = {}
    for key in zoneinfo.available_timezones():
        for year, month in ((2019, 1), (2019, 7), (2026, 1), (2026, 7)):
            local = datetime(year, month, 1, tzinfo=ZoneInfo(key))
            hours = (local.utcoffset() or timedelta()).total_seconds() / 3600
            meanings.setdefault((local.tzname() or "").upper(), set()).add(hours)

    assert {name for name in ZONES if len(meanings.get(name, ())) > 1} == {"PST", "CDT"}
    for name in ZONES.keys() & meanings.keys():
        assert ZONES[name] in meanings[name], name
    assert not {"CST", "IST"} & ZONES.keys()


@pytest.mark.parametrize("value", READ)
def test_dates_are_read(value: object) -> None:
    """Values that feeds, parsers and databases give."""
    assert parse_feed_date(value) == MEANT


@pytest.mark.parametrize("value", [date(2026, 3, 5), "2026-03-05", "20260305", "5 March 2026", "2026-W10-4"])
def test_a_date_without_a_time_is_midnight_utc(value: object) -> None:
    """The declared zone does not move it."""
    midnight = datetime(2026, 3, 5, tzinfo=UTC)

    assert parse_feed_date(value) == parse_feed_date(value, SHANGHAI) == midnight


def test_milliseconds_before_2001_are_read() -> None:
    """Twelve digits that are no year, month, day, hour and minute; and times before 1970."""
    year_1990, year_1950 = datetime(1990, 1, 1, tzinfo=UTC), datetime(1950, 1, 1, tzinfo=UTC)

    assert parse_feed_date(631_152_000_000) == parse_feed_date("631152000000") == year_1990
    assert parse_feed_date(-631_152_000_000) == parse_feed_date("-631152000") == year_1950
    assert parse_feed_date(202603051407) is parse_feed_date("202603051407") is None


def test_twelve_is_the_hour_after_midnight_or_noon() -> None:
    """And 24:00 is the next day."""
    assert parse_feed_date("5 Mar 2026 12:30 AM Z") == datetime(2026, 3, 5, 0, 30, tzinfo=UTC)
    assert parse_feed_date("5 Mar 2026 12:30 PM Z") == datetime(2026, 3, 5, 12, 30, tzinfo=UTC)
    assert parse_feed_date("2026-03-05T24:00:00Z") == datetime(2026, 3, 6, tzinfo=UTC)


@pytest.mark.parametrize("value", UNREAD)
def test_what_is_not_certain_is_not_read(value: object) -> None:
    """Neither in a declared zone."""
    assert parse_feed_date(value) is None
    assert parse_feed_date(value, SHANGHAI) is None


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 3, 5, 22, 7, 9),
        "2026-03-05T22:07:09",
        "Thu, 5 Mar 2026 22:07:09",
        "Thu, 5 Mar 2026 10:07:09 PM",
        "Thu, 5 Mar 2026 22:07:09 CST",
        "Thu Mar 5 22:07:09 CST 2026",
    ],
)
def test_a_local_time_needs_a_declared_zone(value: object) -> None:
    """An ambiguous name is read where it is the name of the declared zone."""
    assert parse_feed_date(value) is None
    assert parse_feed_date(value, SHANGHAI) == MEANT


def test_an_ambiguous_name_of_another_zone_stays_unread() -> None:
    """CST is no time of Berlin, nor of Chicago in summer."""
    assert parse_feed_date("5 Mar 2026 08:07:09 CST", BERLIN) is None
    assert parse_feed_date("5 Mar 2026 08:07:09 CST", ZoneInfo("America/Chicago")) == MEANT
    assert parse_feed_date("5 Jul 2026 08:07:09 CST", ZoneInfo("America/Chicago")) is None


@pytest.mark.parametrize("value", ["2026-10-25T02:30:00", "2026-03-29T02:30:00"])
def test_local_times_that_occur_twice_or_never_are_not_read(value: str) -> None:
    """The clocks go back and forward in Berlin."""
    assert parse_feed_date(value, BERLIN) is None


@given(st.one_of(st.text(), st.integers(), st.floats(), st.binary(), st.datetimes(), st.lists(st.integers())))
def test_no_value_raises(value: object) -> None:
    """A date is read in UTC, or not."""
    found = parse_feed_date(value)

    assert found is None or found.utcoffset() == timedelta()


@pytest.mark.parametrize("name", ["CEST+5", "Berlin", "..", "Europe", "x" * 300, "\0"])
def test_an_unknown_zone_is_named(name: str) -> None:
    """As a ValueError, whatever the database says."""
    with pytest.raises(ValueError, match="expected a time zone such as"):
        time_zone(name)


def test_an_article_keeps_everything_but_a_date_that_cannot_be_read() -> None:
    """A missing or blank date does not count as one."""
    article = {"title": "Ferry aground", "published_at": "Thu, 5 Mar 2026 22:07:09 +08:00"}

    assert with_parsed_date(article) == (
        {"title": "Ferry aground", "published_at": "2026-03-05T14:07:09+00:00"},
        False,
    )
    assert with_parsed_date({**article, "published_at": "soon"}) == ({"title": "Ferry aground"}, True)
    for blank in (None, "", "  "):
        assert with_parsed_date({**article, "published_at": blank}) == ({"title": "Ferry aground"}, False)


@pytest.mark.parametrize(
    "text", ["Fri, 27 Nov 2026 00:00:00 +0100", "2026-11-27T00:00:00-05:00", "27 Nov 2026"]
)
def test_midnight_at_any_offset_is_a_date_without_a_time(text: str) -> None:
    """The service takes midnight UTC for one."""
    assert parse_feed_date(text) == datetime(2026, 11, 27, tzinfo=UTC)
