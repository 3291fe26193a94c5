"""Our cron expressions beside those of croniter, at every change of every clock from 2020 to 2040.

croniter is what most Python programs take. Where it says something else than we do, the difference has to be one of
`Difference`: the rule in `crates/schedule/src/cron.rs` says why we differ. Both sides read the zones of the package
`tzdata`, so that a database of another age on this machine makes no difference.
"""

import bisect
import json
import os
import subprocess
from collections import Counter, defaultdict
from datetime import datetime, timedelta, timezone
from enum import Enum
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones, reset_tzpath

import tzdata
from croniter import croniter

ZONES = str(Path(tzdata.__file__).parent / "zoneinfo")
reset_tzpath([ZONES])

HOUR = 3600
DAY = 24 * HOUR
FIRST = int(datetime(2020, 1, 1, tzinfo=timezone.utc).timestamp())
LAST = int(datetime(2041, 1, 1, tzinfo=timezone.utc).timestamp())


class Difference(Enum):
    """What croniter does that our rule does not."""

    REPEATED = "a fixed time that the clock shows twice happens twice; ours happens at its first coming"
    MOVED = "a time of an expression with * that the clock leaves out happens after the gap; ours is left out"
    MISSED = "a fold of three hours: a time of an expression with * is passed over the second time; ours happens twice"
    FAILED = "it ends with an AssertionError of its own, looking across two changes"


class Change(NamedTuple):
    """The clock goes from one offset to another, both in seconds."""

    at: int
    before: int
    after: int

    def local(self, offset: int) -> datetime:
        return datetime.fromtimestamp(self.at + offset, timezone.utc)

    @property
    def is_gap(self) -> bool:
        return self.after > self.before

    @property
    def length(self) -> int:
        return abs(self.after - self.before)


class Row(NamedTuple):
    """The times of an expression after `after` and up to `until`, and no more than `at_most`."""

    zone: str
    expression: str
    after: int
    until: int
    at_most: int


def offset(zone: ZoneInfo, at: int) -> int:
    return int(datetime.fromtimestamp(at, zone).utcoffset().total_seconds())


@cache
def changes(name: str) -> tuple[Change, ...]:
    """Found by asking for the offset every other day, which is closer than any two changes are."""
    zone = ZoneInfo(name)
    found = []
    for start in range(FIRST, LAST, 2 * DAY):
        before, after = offset(zone, start), offset(zone, start + 2 * DAY)
        if before != after:
            span = range(start, start + 2 * DAY)
            at = start + bisect.bisect_left(span, True, key=lambda at: offset(zone, at) != before)
            found.append(Change(at, before, after))
    return tuple(found)


def zones_by_changes() -> dict[tuple[Change, ...], list[str]]:
    zones = defaultdict(list)
    for name in sorted(available_timezones()):
        zones[changes(name)].append(name)
    return zones


def expressions(change: Change) -> tuple[list[str], list[str]]:
    """Those that are due some times a day, and those due every hour or more often."""
    first = change.local(min(change.before, change.after))
    last = change.local(max(change.before, change.after))
    middle = first + (last - first) / 2
    minute, hour = middle.minute, middle.hour
    hours = ",".join(str(hour) for hour in sorted({(first.hour - 1) % 24, first.hour, last.hour}))
    daily = [
        f"{first.minute} {first.hour} * * *",
        f"{minute} {hour} * * *",
        f"{last.minute} {last.hour} * * *",
        f"{minute} {hours} * * *",
        f"0,{minute or 15},45 {first.hour},{last.hour} * * *",
        f"*/15 {hour} * * *",
        f"{minute} {hour} * * MON-FRI",
        f"{minute} {hour} {middle.day} {middle.month} *",
        f"{minute} {hour} 29 2 SUN",
        "0 9 * * *",
    ]
    return daily, ["*/15 * * * *", "0 * * * *", "30 */2 * * *"]


def rows(zone: str, change: Change) -> list[Row]:
    daily, frequent = expressions(change)
    half = change.length // 2
    inside = [change.at + seconds for seconds in (-half, -1, half)]
    return [
        Row(zone, expression, after, change.at + span, at_most)
        for some, span in ((daily, 26 * HOUR), (frequent, 3 * HOUR))
        for expression in some
        for after, at_most in [(change.at - span, 99), *((after, 2) for after in inside)]
    ]


def ours(rows: list[Row]) -> list[list[int]]:
    finished = subprocess.run(
        [os.environ["NEXT_OCCURRENCES"]],
        input="\n".join(map(json.dumps, rows)),
        env={**os.environ, "TZDIR": ZONES},
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in finished.stdout.splitlines()]


def theirs(row: Row) -> tuple[list[int], bool]:
    """What croniter says, and whether it got to the end."""
    due = []
    times = croniter(row.expression, datetime.fromtimestamp(row.after, ZoneInfo(row.zone)))
    while len(due) < row.at_most:
        try:
            at = int(times.get_next(float))
        except AssertionError:
            return due, False
        if at > row.until:
            break
        due.append(at)
    return due, True


def has_fixed_times(expression: str) -> bool:
    minute, hour, *_ = expression.split()
    return not (minute.startswith("*") or hour.startswith("*"))


def comes_again(row: Row, at: int) -> bool:
    return datetime.fromtimestamp(at, ZoneInfo(row.zone)).fold == 1


def explain(row: Row, at: int, is_ours: bool) -> Difference | None:
    """Why only one side has a time at `at`; none if our rule does not say so."""
    in_second_coming = comes_again(row, at)
    fixed = has_fixed_times(row.expression)
    if not is_ours and fixed and in_second_coming:
        return Difference.REPEATED
    if not is_ours and not fixed and any(change.is_gap and change.at == at for change in changes(row.zone)):
        return Difference.MOVED
    of_three_hours = any(
        change.length == 3 * HOUR and 0 <= at - change.at < change.length for change in changes(row.zone)
    )
    if is_ours and not fixed and in_second_coming and of_three_hours:
        return Difference.MISSED
    return None


def compare(row: Row, ours: list[int]) -> tuple[Counter, list[str]]:
    """The differences by their kind, and those that have none."""
    due, complete = theirs(row)
    differences = Counter()
    until = row.until
    if not complete:
        differences[Difference.FAILED] += 1
        until = due[-1] if due else row.after
    for side in (ours, due):
        if len(side) == row.at_most:
            until = min(until, side[-1])
    unexplained = []
    if due != sorted(set(due)) or ours != sorted(set(ours)):
        unexplained.append(f"{row}: out of order, {ours=} {due=}")
    # Said apart, since croniter would agree.
    if has_fixed_times(row.expression) and any(comes_again(row, at) for at in ours):
        unexplained.append(f"{row}: a fixed time that comes again, {ours=}")
    for at in set(ours) ^ set(due):
        if at > until:
            continue
        difference = explain(row, at, at in ours)
        differences[difference] += 1
        if difference is None:
            unexplained.append(f"{row}: {at} is {'ours' if at in ours else 'of croniter'} alone, {ours=} {due=}")
    return differences, unexplained


def compare_some(some: list[tuple[Row, list[int]]]) -> tuple[Counter, list[str]]:
    differences, unexplained = Counter(), []
    for row, due in some:
        of_row = compare(row, due)
        differences += of_row[0]
        unexplained += of_row[1]
    return differences, unexplained


def test_every_change_of_every_clock():
    compared = [
        row for changes, zones in zones_by_changes().items() for change in changes for row in rows(zones[0], change)
    ]
    pairs = list(zip(compared, ours(compared), strict=True))
    assert len(pairs) > 70_000
    differences, unexplained = Counter(), []
    with get_context("fork").Pool() as pool:
        parts = [pairs[start : start + 2_000] for start in range(0, len(pairs), 2_000)]
        for of_part in pool.imap_unordered(compare_some, parts):
            differences += of_part[0]
            unexplained += of_part[1]
    assert not unexplained, "\n".join([f"{len(unexplained)} differences without a reason", *sorted(unexplained)[:20]])
    assert set(differences) == set(Difference), "a kind of difference that is gone needs no explanation any more"
    print(f"{len(pairs)} rows", *(f"{kind.name}: {count}" for kind, count in differences.items()), sep="\n")


def test_zones_with_the_same_changes_have_the_same_times():
    for changes, zones in zones_by_changes().items():
        wanted = [
            Row("", expression, change.at - 3 * HOUR, change.at + 3 * HOUR, 99)
            for change in changes
            for expression in ("30 0-4 * * *", "*/15 * * * *", expressions(change)[0][1])
        ]
        of_each = ours([row._replace(zone=zone) for zone in zones for row in wanted])
        for number, zone in enumerate(zones):
            assert of_each[number * len(wanted) :][: len(wanted)] == of_each[: len(wanted)], f"{zone}, {zones[0]}"


def test_the_calendar():
    calendar = [
        "0 0 29 2 *",
        "0 0 29 FEB SUN",
        "59 23 31 * *",
        "0 9 * * MON-FRI",
        "0 9 * * FRI-MON",
        "0 9 * * 5-7",
        "0 9 13 * FRI",
        "0 9 */10 * MON",
        "0 9 1,15 */3 *",
        "1-30/5 9-17/4 * 1,6,12 0",
        "*/7 */5 */9 * *",
        "@hourly",
        "@daily",
        "@midnight",
        "@weekly",
        "@monthly",
        "@yearly",
        "@annually",
    ]
    year = timedelta(days=365).total_seconds()
    compared = [
        Row(zone, expression, int(FIRST + number * 7.3 * year), 2**33, 40)
        for zone in ("UTC", "Asia/Kolkata", "Pacific/Kiritimati")
        for expression in calendar
        for number in range(12)
    ]
    for row, due in zip(compared, ours(compared), strict=True):
        assert (due, True) == theirs(row), row
