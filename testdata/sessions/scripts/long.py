# A working day: eleven turns and 150 tool uses on a time tracker. The benchmark of the
# memory agent (`foreword-bench agent`) is fed with it; no other test reads it.

PROJECT = "tempo"
LEAN = True


def part(path, offset, limit):
    """Reads some lines of a file."""
    given = {"file_path": "${PROJECT}/" + path, "offset": offset, "limit": limit}
    return {"tool": "Read", "input": given}


def tests(what="", description="Run the tests"):
    return bash(f"python3 -m unittest {what}".strip(), description)


def commit(message):
    return bash(f"git add -A && git commit -m '{message}'", "Commit")


def journal(month, days):
    """A month as somebody would have written it down."""
    work = [
        ("09:00", "10:30", "acme/api", "import endpoint", "#dev"),
        ("10:30", "10:50", "acme", "stand-up", "#meeting !nobill"),
        ("11:00", "12:40", "acme/web", "checkout form", "#dev #forms"),
        ("13:30", "15:05", "globex", "database review", "#review"),
        ("15:05", "15:20", "globex", "call with Dana", "#meeting"),
        ("15:30", "17:10", "acme/api", "error responses", "#dev"),
        ("20:00", "21:25", "own", "accounting", "!nobill"),
    ]
    lines = []
    for day in days:
        lines.append(f"2026-{month:02}-{day:02}")
        for at in sorted({(day * 3 + at * 2) % len(work) for at in range(2 + day % 3)}):
            start, end, project, text, marks = work[at]
            lines.append(f"  {start}-{end} {project}: {text} {marks}")
        lines.append("")
    return "\n".join(lines)


FILES = {
    "README.md": """\
# tempo

Time tracking in plain text. A journal is a folder with one file a month.

    tempo report --by project --when 2026-03
    tempo add acme/api 09:00-10:30 "import endpoint" --tag dev
    tempo export --format csv

The format of a journal is described in docs/format.md, settings in tempo.ini.

Run the tests with `python3 -m unittest`.
""",
    "docs/format.md": """\
# The journal

A file is named after its month: `2026-03.txt`. A line with a date opens a day;
the indented lines below it are its entries:

    2026-03-02
      09:00-10:30 acme/api: import endpoint #dev
      10:30-10:50 acme: stand-up #meeting !nobill

An entry has a span, a project, a text, tags (`#dev`) and marks (`!nobill`).
A project may have parts, divided by a slash. Whoever asks for `acme` gets
`acme/api` and `acme/web` as well.

Instead of a span an entry may begin with a duration: `1h30`, `90m` or `1.5h`.
Lines that begin with `;` are comments.
""",
    "tempo.ini": """\
[journal]
folder = journal

[rates]
default = 80.00
acme = 95.00
acme/web = 90.00
globex = 110.50

[rounding]
minutes = 5
""",
    "tempo/__init__.py": '"""Time tracking in plain text."""\n\n__version__ = "0.4.0"\n',
    "tempo/model.py": '''\
"""What a journal is made of."""

import datetime
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Span:
    """From one time of a day to another."""

    start: datetime.time
    end: datetime.time

    @property
    def minutes(self):
        return minutes_of(self.end) - minutes_of(self.start)

    def overlaps(self, other):
        return self.start < other.end and other.start < self.end

    def __str__(self):
        return f"{self.start:%H:%M}-{self.end:%H:%M}"


@dataclass(frozen=True)
class Entry:
    """One piece of work on one day."""

    day: datetime.date
    project: str
    text: str
    minutes: int
    span: Span | None = None
    tags: frozenset = frozenset()
    marks: frozenset = frozenset()

    @property
    def billable(self):
        return "nobill" not in self.marks

    def belongs_to(self, project):
        """Whether this is work on a project or on a part of it."""
        return self.project == project or self.project.startswith(project + "/")


@dataclass
class Journal:
    """Entries in the order in which they were written down."""

    entries: list = field(default_factory=list)
    problems: list = field(default_factory=list)

    def add(self, entry):
        self.entries.append(entry)

    def days(self):
        """Every day with its entries, oldest first."""
        days = {}
        for entry in self.entries:
            days.setdefault(entry.day, []).append(entry)
        return dict(sorted(days.items()))

    def projects(self):
        return sorted({entry.project for entry in self.entries})

    def __len__(self):
        return len(self.entries)

    def __iter__(self):
        return iter(self.entries)


@dataclass(frozen=True)
class Problem:
    """A line that could not be understood."""

    file: str
    line: int
    what: str

    def __str__(self):
        return f"{self.file}:{self.line}: {self.what}"


def minutes_of(time):
    return time.hour * 60 + time.minute
''',
    "tempo/durations.py": '''\
"""Durations as people write them: 1h30, 90m, 1.5h."""

import re

HOURS_AND_MINUTES = re.compile(r"^(\\d+)h(\\d{1,2})?m?$")
MINUTES = re.compile(r"^(\\d+)m(in)?$")
DECIMAL_HOURS = re.compile(r"^(\\d+)[.,](\\d+)h$")


class NotADuration(ValueError):
    pass


def parse(text):
    """Minutes."""
    text = text.strip().lower()
    if match := HOURS_AND_MINUTES.match(text):
        hours, minutes = int(match[1]), int(match[2] or 0)
        if minutes >= 60:
            raise NotADuration(f"{text}: an hour has 60 minutes")
        return hours * 60 + minutes
    if match := MINUTES.match(text):
        return int(match[1])
    if match := DECIMAL_HOURS.match(text):
        fraction = int(match[2]) / 10 ** len(match[2])
        return round((int(match[1]) + fraction) * 60)
    raise NotADuration(f"{text!r} is not a duration; write 1h30, 90m or 1.5h")


def is_duration(text):
    try:
        parse(text)
    except NotADuration:
        return False
    return True


def show(minutes):
    """1h30, or 45m below an hour."""
    if minutes < 0:
        return "-" + show(-minutes)
    hours, rest = divmod(minutes, 60)
    if hours == 0:
        return f"{rest}m"
    return f"{hours}h{rest:02}"


def decimal(minutes):
    """Hours with two digits, as they stand on a bill."""
    return f"{minutes / 60:.2f}"


def round_to(minutes, step):
    """The next multiple of a step; work is never rounded away."""
    if step <= 1:
        return minutes
    return -(-minutes // step) * step
''',
    "tempo/parser.py": '''\
"""From the lines of a journal to entries.

A line that cannot be understood becomes a problem with its place; the other lines
are read all the same.
"""

import datetime
import re

from . import durations
from .model import Entry, Journal, Problem, Span

DAY = re.compile(r"^(\\d{4})-(\\d{2})-(\\d{2})\\s*$")
SPAN = re.compile(r"^(\\d{1,2}):(\\d{2})-(\\d{1,2}):(\\d{2})$")
TAG = re.compile(r"(?:^|\\s)#([\\w-]+)")
MARK = re.compile(r"(?:^|\\s)!([\\w-]+)")


class Broken(ValueError):
    """A line that is none."""


def parse(text, file="journal", into=None):
    journal = Journal() if into is None else into
    day = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith(";"):
            continue
        try:
            if not line.startswith((" ", "\\t")):
                day = parse_day(line)
            elif day is None:
                raise Broken("an entry before the first day")
            else:
                journal.add(parse_entry(line.strip(), day))
        except ValueError as error:
            journal.problems.append(Problem(file, number, str(error)))
    return journal


def parse_day(line):
    match = DAY.match(line)
    if not match:
        raise Broken(f"{line.strip()!r} is not a day; write 2026-03-02")
    return datetime.date(*(int(it) for it in match.groups()))


def parse_entry(line, day):
    when, _, rest = line.partition(" ")
    project, colon, text = rest.partition(":")
    if not colon:
        raise Broken("a project ends with a colon")
    span, minutes = parse_when(when)
    return Entry(
        day=day,
        project=parse_project(project),
        text=plain(text),
        minutes=minutes,
        span=span,
        tags=frozenset(TAG.findall(text)),
        marks=frozenset(MARK.findall(text)),
    )


def parse_when(word):
    """A span or a duration, and its minutes."""
    match = SPAN.match(word)
    if not match:
        return None, durations.parse(word)
    first, second, third, fourth = (int(it) for it in match.groups())
    span = Span(datetime.time(first, second), datetime.time(third, fourth))
    return span, span.minutes


def parse_project(word):
    word = word.strip().lower()
    parts = word.split("/")
    if not all(parts) or " " in word:
        raise Broken(f"{word!r} is not a project")
    return word


def plain(text):
    """The text without tags and marks."""
    text = TAG.sub(" ", text)
    text = MARK.sub(" ", text)
    return " ".join(text.split())


def write(entry):
    """An entry as a line of a journal."""
    when = str(entry.span) if entry.span else durations.show(entry.minutes)
    marks = [f"#{tag}" for tag in sorted(entry.tags)] + [f"!{mark}" for mark in sorted(entry.marks)]
    return "  " + " ".join([when, f"{entry.project}:", entry.text, *marks]).rstrip()
''',
    "tempo/store.py": '''\
"""A folder of journals, one file a month."""

import pathlib

from . import parser
from .model import Journal


class Store:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def files(self):
        return sorted(self.folder.glob("????-??.txt"))

    def load(self):
        """Everything, oldest first."""
        journal = Journal()
        for file in self.files():
            parser.parse(file.read_text(encoding="utf-8"), file.name, into=journal)
        return journal

    def file_for(self, day):
        return self.folder / f"{day:%Y-%m}.txt"

    def append(self, entry):
        """Adds an entry under its day, which is opened if it is new."""
        file = self.file_for(entry.day)
        file.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        file.write_text(insert(text, entry), encoding="utf-8")


def insert(text, entry):
    heading = entry.day.isoformat()
    lines = text.rstrip("\\n").split("\\n") if text.strip() else []
    if heading not in lines:
        lines += [""] if lines else []
        return "\\n".join([*lines, heading, parser.write(entry), ""])
    at = lines.index(heading) + 1
    while at < len(lines) and lines[at].startswith((" ", "\\t")):
        at += 1
    lines.insert(at, parser.write(entry))
    return "\\n".join([*lines, ""])
''',
    "tempo/filters.py": '''\
"""Which entries a command is about."""

import calendar
import datetime
import re
from dataclasses import dataclass

MONTH = re.compile(r"^(\\d{4})-(\\d{2})$")
YEAR = re.compile(r"^(\\d{4})$")


class NotAPeriod(ValueError):
    pass


@dataclass(frozen=True)
class Period:
    """Days from the first to the last, both included."""

    first: datetime.date
    last: datetime.date

    def __contains__(self, day):
        return self.first <= day <= self.last

    def __str__(self):
        if self.first == self.last:
            return self.first.isoformat()
        return f"{self.first} to {self.last}"


def period(word, today):
    """What today, week, month, 2026, 2026-03, 2026-03-02 or a..b mean."""
    if ".." in word:
        first, last = word.split("..", 1)
        return Period(period(first, today).first, period(last, today).last)
    if word == "today":
        return Period(today, today)
    if word == "week":
        monday = today - datetime.timedelta(days=today.weekday())
        return Period(monday, monday + datetime.timedelta(days=6))
    if word == "month":
        return month(today.year, today.month)
    if match := MONTH.match(word):
        return month(int(match[1]), int(match[2]))
    if match := YEAR.match(word):
        year = int(match[1])
        return Period(datetime.date(year, 1, 1), datetime.date(year, 12, 31))
    try:
        day = datetime.date.fromisoformat(word)
    except ValueError:
        raise NotAPeriod(f"{word!r} is not a period") from None
    return Period(day, day)


def month(year, number):
    last = calendar.monthrange(year, number)[1]
    return Period(datetime.date(year, number, 1), datetime.date(year, number, last))


def select(entries, when=None, project=None, tag=None, billable=None):
    """The entries that all of the conditions hold for."""
    for entry in entries:
        if when is not None and entry.day not in when:
            continue
        if project is not None and not entry.belongs_to(project):
            continue
        if tag is not None and tag not in entry.tags:
            continue
        if billable is not None and entry.billable != billable:
            continue
        yield entry
''',
    "tempo/rates.py": '''\
"""What work costs."""


class Rates:
    """Prices of an hour by project; a part of a project may have its own."""

    def __init__(self, by_project, default=0.0):
        self.by_project = dict(by_project)
        self.default = default

    def of(self, project):
        """The rate of a project, else of what it is a part of, else the default."""
        while project:
            if project in self.by_project:
                return self.by_project[project]
            project, _, _ = project.rpartition("/")
        return self.default

    def cost(self, entry):
        if not entry.billable:
            return 0.0
        return entry.minutes / 60 * self.of(entry.project)

    def total(self, entries):
        return sum(self.cost(entry) for entry in entries)


def show(amount):
    return f"{amount:,.2f}"
''',
    "tempo/report.py": '''\
"""Sums of a journal, and how they look."""

from dataclasses import dataclass

from . import durations, rates

BY = ("project", "tag", "day", "week")


@dataclass
class Line:
    name: str
    minutes: int = 0
    billable: int = 0
    cost: float = 0.0

    def take(self, entry, prices):
        self.minutes += entry.minutes
        if entry.billable:
            self.billable += entry.minutes
        self.cost += prices.cost(entry)


def names(entry, by):
    if by == "project":
        return [entry.project]
    if by == "tag":
        return sorted(entry.tags) or ["(none)"]
    if by == "day":
        return [entry.day.isoformat()]
    if by == "week":
        year, week, _ = entry.day.isocalendar()
        return [f"{year}-W{week:02}"]
    raise ValueError(f"{by!r}: sums are made by {', '.join(BY)}")


def group(entries, by, prices):
    """One line a name, and the total. With tags an entry may count for several lines."""
    lines, total = {}, Line("total")
    for entry in entries:
        for name in names(entry, by):
            lines.setdefault(name, Line(name)).take(entry, prices)
        total.take(entry, prices)
    return [lines[name] for name in sorted(lines)], total


def table(lines, total, by):
    rows = [[by, "time", "billable", "cost"]]
    for line in [*lines, total]:
        rows.append(
            [
                line.name,
                durations.show(line.minutes),
                durations.show(line.billable),
                rates.show(line.cost),
            ]
        )
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    out = []
    for number, row in enumerate(rows):
        if number == len(rows) - 1:
            out.append("-" * (sum(widths) + 6))
        first, *rest = row
        cells = [first.ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(rest, widths[1:])]
        out.append("  ".join(cells).rstrip())
    return "\\n".join(out)


def text(entries, by, prices):
    entries = list(entries)
    if not entries:
        return "nothing was written down"
    lines, total = group(entries, by, prices)
    return table(lines, total, by)
''',
    "tempo/export.py": '''\
"""Entries for other programs."""

import csv
import io
import json

from . import durations

FIELDS = ("day", "start", "end", "hours", "project", "text", "tags", "billable")


def row(entry):
    return {
        "day": entry.day.isoformat(),
        "start": f"{entry.span.start:%H:%M}" if entry.span else "",
        "end": f"{entry.span.end:%H:%M}" if entry.span else "",
        "hours": durations.decimal(entry.minutes),
        "project": entry.project,
        "text": entry.text,
        "tags": " ".join(sorted(entry.tags)),
        "billable": "yes" if entry.billable else "no",
    }


def to_csv(entries):
    out = io.StringIO()
    writer = csv.DictWriter(out, FIELDS, lineterminator="\\n")
    writer.writeheader()
    writer.writerows(row(entry) for entry in entries)
    return out.getvalue()


def to_json(entries):
    return json.dumps([row(entry) for entry in entries], indent=1) + "\\n"


FORMATS = {"csv": to_csv, "json": to_json}
''',
    "tempo/config.py": '''\
"""Settings: tempo.ini in the working folder, or the file that TEMPO_CONFIG names."""

import configparser
import os
import pathlib
from dataclasses import dataclass

from .rates import Rates


@dataclass(frozen=True)
class Config:
    folder: pathlib.Path
    rates: Rates
    rounding: int = 1


def load(path=None):
    path = pathlib.Path(path or os.environ.get("TEMPO_CONFIG", "tempo.ini"))
    # A project's name may hold a slash, a colon ends a journal's project: only = divides.
    source = configparser.ConfigParser(delimiters=("=",))
    if path.exists():
        source.read(path, encoding="utf-8")
    prices = dict(source["rates"]) if source.has_section("rates") else {}
    prices = {project: float(price) for project, price in prices.items()}
    default = prices.pop("default", 0.0)
    return Config(
        folder=path.parent / source.get("journal", "folder", fallback="journal"),
        rates=Rates(prices, default),
        rounding=source.getint("rounding", "minutes", fallback=1),
    )
''',
    "tempo/cli.py": '''\
"""The commands."""

import argparse
import datetime
import sys

from . import config, durations, export, filters, parser, report
from .model import Entry
from .store import Store


def arguments():
    top = argparse.ArgumentParser(prog="tempo", description="Time tracking in plain text")
    top.add_argument("--config", help="another file than tempo.ini")
    commands = top.add_subparsers(dest="command", required=True)

    add = commands.add_parser("add", help="write an entry down")
    add.add_argument("project")
    add.add_argument("when", help="09:00-10:30, 1h30, 90m or 1.5h")
    add.add_argument("text")
    add.add_argument("--tag", action="append", default=[])
    add.add_argument("--nobill", action="store_true")
    add.add_argument("--day", type=datetime.date.fromisoformat)

    show = commands.add_parser("report", help="sums by project, tag, day or week")
    show.add_argument("--by", choices=report.BY, default="project")
    selecting(show)

    out = commands.add_parser("export", help="entries for other programs")
    out.add_argument("--format", choices=sorted(export.FORMATS), default="csv")
    selecting(out)

    commands.add_parser("projects", help="the projects of all journals")
    return top


def selecting(command):
    command.add_argument("--when", help="today, week, month, 2026, 2026-03, 2026-03-02 or a..b")
    command.add_argument("--project")
    command.add_argument("--tag")
    command.add_argument("--billable", action="store_const", const=True)


def main(given=None, today=None):
    options = arguments().parse_args(given)
    today = today or datetime.date.today()
    settings = config.load(options.config)
    store = Store(settings.folder)
    run = {"add": add, "report": show, "export": out, "projects": projects}[options.command]
    try:
        return run(options, settings, store, today)
    except ValueError as error:
        print(f"tempo: {error}", file=sys.stderr)
        return 2


def add(options, settings, store, today):
    span, minutes = parser.parse_when(options.when)
    entry = Entry(
        day=options.day or today,
        project=parser.parse_project(options.project),
        text=options.text,
        minutes=minutes,
        span=span,
        tags=frozenset(options.tag),
        marks=frozenset(["nobill"] if options.nobill else []),
    )
    store.append(entry)
    print(f"{entry.project}: {durations.show(entry.minutes)}")
    return 0


def selected(options, store, today):
    journal = store.load()
    for problem in journal.problems:
        print(f"tempo: {problem}", file=sys.stderr)
    when = filters.period(options.when, today) if options.when else None
    return filters.select(journal, when, options.project, options.tag, options.billable)


def show(options, settings, store, today):
    print(report.text(selected(options, store, today), options.by, settings.rates))
    return 0


def out(options, settings, store, today):
    print(export.FORMATS[options.format](selected(options, store, today)), end="")
    return 0


def projects(options, settings, store, today):
    for project in store.load().projects():
        print(project)
    return 0
''',
    "tempo/__main__.py": '"""python3 -m tempo"""\n\nimport sys\n\nfrom .cli import main\n\nsys.exit(main())\n',
    "tests/__init__.py": "",
    "tests/test_durations.py": '''\
import unittest

from tempo import durations


class ParseTest(unittest.TestCase):
    def test_all_forms_mean_minutes(self):
        for text, minutes in [("1h30", 90), ("2h", 120), ("45m", 45), ("90min", 90), ("1.5h", 90), ("0,25h", 15)]:
            self.assertEqual(durations.parse(text), minutes, text)

    def test_an_hour_has_sixty_minutes(self):
        with self.assertRaises(durations.NotADuration):
            durations.parse("1h75")

    def test_other_words_are_no_durations(self):
        for text in ["", "h", "soon", "12", "1:30"]:
            self.assertFalse(durations.is_duration(text), text)


class ShowTest(unittest.TestCase):
    def test_hours_and_minutes(self):
        self.assertEqual([durations.show(it) for it in [0, 45, 60, 95, -30]], ["0m", "45m", "1h00", "1h35", "-30m"])

    def test_rounding_goes_up(self):
        self.assertEqual([durations.round_to(it, 5) for it in [0, 1, 5, 6]], [0, 5, 5, 10])
''',
    "tests/test_parser.py": '''\
import datetime
import unittest

from tempo import parser

JOURNAL = """\\
; the first week
2026-03-02
  09:00-10:30 acme/api: import endpoint #dev
  45m acme: stand-up #meeting !nobill

2026-03-03
  1.5h Globex: database review #review #sql
"""


class ParseTest(unittest.TestCase):
    def test_entries_have_day_project_time_and_tags(self):
        journal = parser.parse(JOURNAL)
        found = [(it.day.day, it.project, it.minutes, sorted(it.tags)) for it in journal]
        self.assertEqual(
            found,
            [(2, "acme/api", 90, ["dev"]), (2, "acme", 45, ["meeting"]), (3, "globex", 90, ["review", "sql"])],
        )
        self.assertEqual(journal.problems, [])

    def test_the_text_is_without_tags_and_marks(self):
        self.assertEqual([it.text for it in parser.parse(JOURNAL)], ["import endpoint", "stand-up", "database review"])

    def test_a_broken_line_costs_only_itself(self):
        journal = parser.parse("2026-03-02\\n  9 to 5 acme: work\\n  1h acme: work\\n", "2026-03.txt")
        self.assertEqual(len(journal), 1)
        self.assertEqual([str(it)[:13] for it in journal.problems], ["2026-03.txt:2"])

    def test_an_entry_needs_a_day(self):
        journal = parser.parse("  1h acme: work\\n")
        self.assertEqual(journal.problems[0].what, "an entry before the first day")

    def test_what_is_written_is_read_again(self):
        for entry in parser.parse(JOURNAL):
            self.assertEqual(parser.parse_entry(parser.write(entry).strip(), entry.day), entry)


class DayTest(unittest.TestCase):
    def test_a_day(self):
        self.assertEqual(parser.parse_day("2026-03-02"), datetime.date(2026, 3, 2))
''',
    "tests/test_filters.py": '''\
import datetime
import unittest

from tempo import filters, parser

TODAY = datetime.date(2026, 3, 4)

JOURNAL = """\\
2026-02-27
  1h acme: work
2026-03-02
  1h acme/api: work #dev
  1h globex: call #meeting !nobill
"""


class PeriodTest(unittest.TestCase):
    def test_words(self):
        for word, expected in [
            ("today", "2026-03-04"),
            ("week", "2026-03-02 to 2026-03-08"),
            ("month", "2026-03-01 to 2026-03-31"),
            ("2026-02", "2026-02-01 to 2026-02-28"),
            ("2026-02..today", "2026-02-01 to 2026-03-04"),
        ]:
            self.assertEqual(str(filters.period(word, TODAY)), expected, word)

    def test_other_words_are_none(self):
        with self.assertRaises(filters.NotAPeriod):
            filters.period("yesterdays", TODAY)


class SelectTest(unittest.TestCase):
    def projects(self, **conditions):
        return [it.project for it in filters.select(parser.parse(JOURNAL), **conditions)]

    def test_a_project_includes_its_parts(self):
        self.assertEqual(self.projects(project="acme"), ["acme", "acme/api"])

    def test_conditions_hold_together(self):
        march = filters.period("2026-03", TODAY)
        self.assertEqual(self.projects(when=march, billable=True), ["acme/api"])
''',
    "tests/test_report.py": '''\
import unittest

from tempo import parser, report
from tempo.rates import Rates

JOURNAL = """\\
2026-03-02
  1h30 acme/api: import endpoint #dev
  30m acme: stand-up #meeting !nobill
2026-03-03
  2h globex: review #dev #sql
"""

PRICES = Rates({"acme": 95.0, "globex": 110.5}, 80.0)


class ReportTest(unittest.TestCase):
    def report(self, by):
        return report.text(parser.parse(JOURNAL), by, PRICES).splitlines()

    def test_by_project(self):
        self.assertEqual(
            self.report("project"),
            [
                "project   time  billable    cost",
                "acme       30m        0m    0.00",
                "acme/api  1h30      1h30  142.50",
                "globex    2h00      2h00  221.00",
                "--------------------------------",
                "total     4h00      3h30  363.50",
            ],
        )

    def test_with_tags_an_entry_may_count_twice_but_not_in_the_total(self):
        lines = self.report("tag")
        self.assertEqual([line.split()[:2] for line in lines[1:4]], [["dev", "3h30"], ["meeting", "30m"], ["sql", "2h00"]])
        self.assertEqual(lines[-1].split()[1], "4h00")

    def test_nothing(self):
        self.assertEqual(report.text([], "day", PRICES), "nothing was written down")
''',
    "tests/test_store.py": '''\
import datetime
import pathlib
import tempfile
import unittest

from tempo import parser
from tempo.store import Store, insert


def entry(line, day="2026-03-02"):
    return parser.parse_entry(line, datetime.date.fromisoformat(day))


class InsertTest(unittest.TestCase):
    def test_a_new_day_is_opened(self):
        self.assertEqual(insert("", entry("1h acme: work")), "2026-03-02\\n  1h00 acme: work\\n")

    def test_an_entry_goes_to_the_end_of_its_day(self):
        text = "2026-03-02\\n  1h00 acme: work\\n\\n2026-03-03\\n  1h00 own: books\\n"
        self.assertEqual(
            insert(text, entry("2h globex: call")),
            "2026-03-02\\n  1h00 acme: work\\n  2h00 globex: call\\n\\n2026-03-03\\n  1h00 own: books\\n",
        )


class StoreTest(unittest.TestCase):
    def test_months_are_read_in_order(self):
        with tempfile.TemporaryDirectory() as folder:
            store = Store(folder)
            store.append(entry("1h acme: later", "2026-03-02"))
            store.append(entry("1h acme: earlier", "2026-02-02"))
            self.assertEqual([it.text for it in store.load()], ["earlier", "later"])
            self.assertEqual(len(list(pathlib.Path(folder).iterdir())), 2)
''',
    "tests/test_cli.py": '''\
import contextlib
import datetime
import io
import pathlib
import tempfile
import unittest

from tempo import cli

TODAY = datetime.date(2026, 3, 4)


class CliTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.config = pathlib.Path(folder.name) / "tempo.ini"
        self.config.write_text("[rates]\\ndefault = 60\\nacme = 95\\n")

    def run_it(self, *arguments):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = cli.main(["--config", str(self.config), *arguments], TODAY)
        return code, out.getvalue()

    def test_what_was_added_is_reported(self):
        self.assertEqual(self.run_it("add", "acme", "1h30", "import"), (0, "acme: 1h30\\n"))
        code, out = self.run_it("report", "--when", "today")
        self.assertEqual((code, out.split()[-1]), (0, "142.50"))

    def test_a_wrong_duration_is_said(self):
        code, out = self.run_it("add", "acme", "soon", "import")
        self.assertEqual(code, 2)
        self.assertIn("'soon' is not a duration", out)
''',
    "journal/2026-01.txt": journal(1, [5, 6, 7, 8, 9, 12, 13, 14, 15, 19, 20, 22]),
    "journal/2026-02.txt": journal(2, [2, 3, 4, 5, 9, 10, 11, 16, 17, 18, 24, 25]),
    "journal/2026-03.txt": journal(3, [2, 3, 4, 5, 6, 9, 10, 11, 12])
    + "\n2026-03-13\n  22:30-01:15 globex: release night #ops\n",
}

TURNS = []


def turn(user, *model):
    TURNS.append({"user": user, "model": list(model)})


# ------------------------------------------------------------ only reads

turn(
    "I'm back on tempo after some months. Read through it and remind me how a line of the journal becomes a line of the report. "
    "Don't change anything yet.",
    *[
        read(path)
        for path in [
            "README.md",
            "docs/format.md",
            "tempo.ini",
            "tempo/model.py",
            "tempo/parser.py",
            "tempo/store.py",
            "tempo/filters.py",
            "tempo/rates.py",
            "tempo/report.py",
            "tempo/export.py",
            "tempo/config.py",
            "tempo/cli.py",
        ]
    ],
    "A journal is a folder with one text file a month. `Store.load` reads all of them in order of their names, `parser.parse` makes an "
    "`Entry` of each indented line, and a line that it does not understand becomes a `Problem` with file and number instead of an error. "
    "`filters.select` keeps what `--when`, `--project` and `--tag` ask for; a project includes its parts, so `acme` finds `acme/api`. "
    "`report.group` adds up minutes and cost per project, tag, day or week, and `report.table` aligns the columns.\n\n"
    "Two things I noticed: `Span.minutes` subtracts two times of one day, and `[rounding]` in tempo.ini is read but used by nothing.",
)

# ------------------------------------------------------------ no tool at all

turn(
    "Good. Before we touch anything: I want to write invoices with this soon. Money as floats, is that a problem for you?",
    "It will be, as soon as an invoice has a total. With floats each line is shown rounded, but the total is the sum of the unrounded "
    "values, so a customer who adds up the lines can be a cent off. I would keep rates as they are until there is an invoice with a test "
    "that shows it, and then move `rates` to `Decimal`, rounding each line to cents before adding. It is contained: only `Rates.cost`, "
    "`Line.cost` and the config know about amounts.",
)

# ------------------------------------------------------------ a bug

turn(
    "First a bug: the report for March says globex has negative hours. I worked one night there. Find it, fix it, with a test.",
    bash("python3 -m tempo report --when 2026-03", "Show the report for March"),
    bash("python3 -m tempo export --when 2026-03 --project globex", "Show the entries of globex"),
    bash("grep -rn 'minutes' tempo --include=*.py", "Find where minutes are computed"),
    read("tests/test_parser.py"),
    edit(
        "tests/test_parser.py",
        "\n\nclass DayTest",
        '''
    def test_work_may_go_past_midnight(self):
        entry = parser.parse_entry("22:30-01:15 globex: release night", datetime.date(2026, 3, 13))
        self.assertEqual(entry.minutes, 165)
        self.assertEqual(str(entry.span), "22:30-01:15")


class DayTest''',
    ),
    tests("tests.test_parser", "Run the new test, it should fail"),
    edit(
        "tempo/model.py",
        "        return minutes_of(self.end) - minutes_of(self.start)\n",
        "        # Who ends earlier than he began has worked past midnight.\n"
        "        return (minutes_of(self.end) - minutes_of(self.start)) % DAY\n",
    ),
    tests("tests.test_parser"),
    edit(
        "tempo/model.py",
        "from dataclasses import dataclass, field\n",
        "from dataclasses import dataclass, field\n\nDAY = 24 * 60\n",
    ),
    tests("tests.test_parser"),
    write(
        "tests/test_model.py",
        '''\
import datetime
import unittest

from tempo.model import Span


def span(text):
    return Span(*(datetime.time.fromisoformat(it) for it in text.split("-")))


class OverlapTest(unittest.TestCase):
    def check(self, first, second, expected):
        self.assertEqual(span(first).overlaps(span(second)), expected, f"{first} and {second}")
        self.assertEqual(span(second).overlaps(span(first)), expected, f"{second} and {first}")

    def test_spans_that_only_touch_do_not_overlap(self):
        self.check("09:00-10:00", "10:00-11:00", False)

    def test_a_part_of_a_span_overlaps(self):
        self.check("09:00-12:00", "10:00-11:00", True)

    def test_work_past_midnight_overlaps_with_the_late_evening(self):
        self.check("22:30-01:15", "23:00-23:30", True)

    def test_work_past_midnight_does_not_overlap_with_the_morning(self):
        self.check("22:30-01:15", "00:30-09:00", False)
''',
    ),
    tests("tests.test_model", "Run the tests of overlaps"),
    edit(
        "tempo/model.py",
        "        return self.start < other.end and other.start < self.end\n",
        '''\
        """Both begin on the same day; one that goes past midnight ends on the next."""
        first, second = minutes_of(self.start), minutes_of(other.start)
        return first < second + other.minutes and second < first + self.minutes
''',
    ),
    tests("", "Run all tests"),
    edit(
        "docs/format.md",
        "Instead of a span",
        "A span that ends earlier than it begins goes past midnight; the whole of it counts\nfor the day on which it began.\n\nInstead of a span",
    ),
    commit("Work past midnight counts for the day on which it began"),
    "The release night `22:30-01:15` was the cause: `Span.minutes` subtracted the times of one day and got -1275 minutes. Minutes are "
    "taken modulo a day now, so it is 2h45. `Span.overlaps` had the same fault: it compared times of the clock, so a night never "
    "overlapped with the evening; it compares minutes since the start of the day now.\n\nI decided that the whole night counts for the "
    "day on which it began, because splitting it would make two entries of one line. docs/format.md says so.",
)

# ------------------------------------------------------------ a small thing

turn(
    "`tempo --version` please.",
    bash("grep -rn '__version__' . --include=*.py --include=*.md", "Find the version"),
    edit(
        "tempo/cli.py",
        '    top.add_argument("--config", help="another file than tempo.ini")\n',
        '    top.add_argument("--config", help="another file than tempo.ini")\n'
        '    top.add_argument("--version", action="version", version=f"tempo {__version__}")\n',
    ),
    edit("tempo/cli.py", "from . import config, ", "from . import __version__, config, "),
    read("tests/test_cli.py"),
    edit(
        "tests/test_cli.py",
        "    def test_a_wrong_duration_is_said",
        '''\
    def test_the_version_is_said(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), self.assertRaises(SystemExit):
            cli.main(["--version"])
        self.assertEqual(out.getvalue(), "tempo 0.4.0\\n")

    def test_a_wrong_duration_is_said''',
    ),
    tests("tests.test_cli"),
    "`tempo --version` prints `tempo 0.4.0`, from `tempo.__version__`. Not committed yet.",
)

# ------------------------------------------------------------ the feature of the day

INVOICE_TEST = '''\
import datetime
import unittest

from tempo import invoice, parser
from tempo.rates import Rates

JOURNAL = """\\
2026-03-02
  52m acme/api: import endpoint
  1h acme/web: checkout form
  20m acme: stand-up !nobill
2026-03-03
  51m acme/api: error responses
  2h globex: review
"""

PRICES = Rates({"acme": 96.0, "acme/web": 90.0}, 80.0)


def make(**more):
    given = {"number": 7, "customer": "acme", "day": datetime.date(2026, 4, 1), "vat": 20, "step": 15}
    return invoice.make(parser.parse(JOURNAL), PRICES, **{**given, **more})


class InvoiceTest(unittest.TestCase):
    def test_each_part_of_a_project_is_one_line(self):
        lines = [(line.project, line.minutes, line.amount) for line in make().lines]
        self.assertEqual(lines, [("acme/api", 105, 168.0), ("acme/web", 60, 90.0)])

    def test_what_is_not_billable_and_what_others_pay_is_left_out(self):
        self.assertEqual({line.project for line in make().lines}, {"acme/api", "acme/web"})

    def test_a_line_is_rounded_and_not_each_entry(self):
        self.assertEqual(make().lines[0].minutes, 105)
        self.assertEqual(make(step=1).lines[0].minutes, 103)

    def test_net_vat_and_total(self):
        made = make()
        self.assertEqual((made.net, made.vat, made.total), (258.0, 51.6, 309.6))

    def test_there_is_no_empty_invoice(self):
        with self.assertRaises(invoice.NothingToBill):
            make(customer="initech")

    def test_how_it_looks(self):
        self.assertEqual(
            invoice.text(make(), "EUR").splitlines(),
            [
                "Invoice 2026-0007                     2026-04-01",
                "acme",
                "",
                "acme/api            1.75 h   96.00        168.00",
                "acme/web            1.00 h   90.00         90.00",
                "                                  --------------",
                "net                                   EUR 258.00",
                "VAT 20 %                               EUR 51.60",
                "total                                 EUR 309.60",
            ],
        )
'''

INVOICE = '''\
"""An invoice: what a customer has to pay for a time.

`make` decides what stands on it, `text` how it looks. Numbers come from `register`.
"""

import datetime
from dataclasses import dataclass

from . import durations, filters, rates


class NothingToBill(ValueError):
    pass


@dataclass(frozen=True)
class Line:
    project: str
    minutes: int
    rate: float

    @property
    def amount(self):
        return self.minutes / 60 * self.rate


@dataclass(frozen=True)
class Invoice:
    number: int
    customer: str
    day: datetime.date
    lines: tuple
    vat_percent: int

    @property
    def name(self):
        return f"{self.day.year}-{self.number:04}"

    @property
    def net(self):
        return sum(line.amount for line in self.lines)

    @property
    def vat(self):
        return self.net * self.vat_percent / 100

    @property
    def total(self):
        return self.net + self.vat


def make(entries, prices, number, customer, day, vat, step=1):
    """The billable work for a customer, one line for each part of the project."""
    minutes = {}
    for entry in filters.select(entries, project=customer, billable=True):
        rounded = durations.round_to(entry.minutes, step)
        minutes[entry.project] = minutes.get(entry.project, 0) + rounded
    if not minutes:
        raise NothingToBill(f"there is nothing to bill to {customer}")
    lines = tuple(Line(project, minutes[project], prices.of(project)) for project in sorted(minutes))
    return Invoice(number, customer, day, lines, vat)


WIDTH = 48


def text(invoice, currency):
    out = [ends(f"Invoice {invoice.name}", invoice.day.isoformat()), invoice.customer, ""]
    for line in invoice.lines:
        hours = f"{durations.decimal(line.minutes)} h"
        left = f"{line.project:<18}{hours:>8}{rates.show(line.rate):>8}"
        out.append(ends(left, rates.show(line.amount)))
    out.append(ends("", "-" * 14))
    for name, amount in [
        ("net", invoice.net),
        (f"VAT {invoice.vat_percent} %", invoice.vat),
        ("total", invoice.total),
    ]:
        out.append(ends(name, f"{currency} {rates.show(amount)}"))
    return "\\n".join(out)


def ends(left, right):
    """Two words at the two ends of a line."""
    return left + right.rjust(WIDTH - len(left))
'''

REGISTER_TEST = '''\
import datetime
import pathlib
import tempfile
import unittest

from tempo.filters import Period
from tempo.register import AlreadyBilled, Register

MARCH = Period(datetime.date(2026, 3, 1), datetime.date(2026, 3, 31))
APRIL = Period(datetime.date(2026, 4, 1), datetime.date(2026, 4, 30))


class RegisterTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "register.jsonl"
        self.register = Register(self.path)

    def test_numbers_are_counted_within_a_year(self):
        self.assertEqual(self.register.enter("acme", MARCH, datetime.date(2026, 4, 1), "1.00"), 1)
        self.assertEqual(self.register.enter("globex", MARCH, datetime.date(2026, 4, 1), "1.00"), 2)
        self.assertEqual(self.register.enter("acme", APRIL, datetime.date(2027, 1, 4), "1.00"), 1)

    def test_the_same_days_are_not_billed_twice(self):
        self.register.enter("acme", MARCH, datetime.date(2026, 4, 1), "1.00")
        week = Period(datetime.date(2026, 3, 30), datetime.date(2026, 4, 5))
        with self.assertRaises(AlreadyBilled) as caught:
            self.register.enter("acme", week, datetime.date(2026, 4, 6), "1.00")
        self.assertEqual(str(caught.exception), "acme was billed for 2026-03-01 to 2026-03-31 with 2026-0001")
        self.assertEqual(len(self.path.read_text().splitlines()), 1)

    def test_a_part_of_a_customer_is_the_customer(self):
        self.register.enter("acme", MARCH, datetime.date(2026, 4, 1), "1.00")
        with self.assertRaises(AlreadyBilled):
            self.register.enter("acme/web", MARCH, datetime.date(2026, 4, 2), "1.00")
'''

REGISTER = '''\
"""The invoices that were written: one JSON object a line, and never a line less."""

import datetime
import json
import pathlib

from .filters import Period


class AlreadyBilled(ValueError):
    pass


class Register:
    def __init__(self, path):
        self.path = pathlib.Path(path)

    def invoices(self):
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]

    def enter(self, customer, period, day, total):
        """The number of a new invoice; one that overlaps with an old one is refused."""
        invoices = self.invoices()
        for known in invoices:
            self.refuse(known, customer, period)
        number = 1 + sum(known["year"] == day.year for known in invoices)
        line = {
            "year": day.year,
            "number": number,
            "customer": customer,
            "first": period.first.isoformat(),
            "last": period.last.isoformat(),
            "total": total,
        }
        with self.path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\\n")
        return number

    def refuse(self, known, customer, period):
        billed = Period(datetime.date.fromisoformat(known["first"]), datetime.date.fromisoformat(known["last"]))
        overlaps = billed.first <= period.last and period.first <= billed.last
        if overlaps and known["customer"] == customer:
            name = f"{known['year']}-{known['number']:04}"
            raise AlreadyBilled(f"{known['customer']} was billed for {billed} with {name}")
'''

RACE = """\
cat > race.py <<'END'
import datetime, multiprocessing, pathlib
from tempo.filters import Period
from tempo.register import Register

def enter(customer):
    day = datetime.date(2026, 4, 1)
    return Register("race.jsonl").enter(customer, Period(day, day), day, "1.00")

if __name__ == "__main__":
    with multiprocessing.Pool(8) as pool:
        numbers = pool.map(enter, [f"customer-{it}" for it in range(200)], chunksize=1)
    print(len(numbers), "invoices,", len(set(numbers)), "numbers")
    pathlib.Path("race.jsonl").unlink()
END
python3 race.py"""

turn(
    "Now invoices. `tempo invoice acme --when 2026-03` should print one: a number, one line per part of the project with hours and rate, "
    "net, VAT and total. Hours are rounded up to the step in tempo.ini, VAT and currency come from there too. The numbers count up within "
    "a year and are never used twice, even if I run it in two terminals, and the same days must not be billed twice. `--dry-run` prints "
    "without taking a number. Tests first, commit when it works.",
    bash("git status --short && git log --oneline", "See where we are"),
    commit("Say the version"),
    read("tests/test_report.py"),
    read("tests/test_store.py"),
    bash("grep -rn 'round_to\\|rounding' tempo tests docs tempo.ini", "Who rounds today"),
    write("tests/test_invoice.py", INVOICE_TEST),
    tests("tests.test_invoice", "Run the new tests, they should fail"),
    write("tempo/invoice.py", INVOICE),
    tests("tests.test_invoice"),
    edit(
        "tempo/invoice.py",
        '''        rounded = durations.round_to(entry.minutes, step)
        minutes[entry.project] = minutes.get(entry.project, 0) + rounded
''',
        "        minutes[entry.project] = minutes.get(entry.project, 0) + entry.minutes\n",
    ),
    edit(
        "tempo/invoice.py",
        "    lines = tuple(Line(project, minutes[project], prices.of(project)) for project in sorted(minutes))\n",
        '''    lines = tuple(
        Line(project, durations.round_to(minutes[project], step), prices.of(project))
        for project in sorted(minutes)
    )
''',
    ),
    tests("-v tests.test_invoice"),
    write("tests/test_register.py", REGISTER_TEST),
    tests("tests.test_register", "Run the new tests, they should fail"),
    write("tempo/register.py", REGISTER),
    tests("tests.test_register"),
    edit(
        "tempo/register.py",
        '        if overlaps and known["customer"] == customer:\n',
        '        if overlaps and same(known["customer"], customer):\n',
    ),
    edit(
        "tempo/register.py",
        '            raise AlreadyBilled(f"{known[\'customer\']} was billed for {billed} with {name}")\n',
        '''            raise AlreadyBilled(f"{known['customer']} was billed for {billed} with {name}")


def same(one, other):
    """Whether one of two customers is the other or a part of it."""
    return (one + "/").startswith(other + "/") or (other + "/").startswith(one + "/")
''',
    ),
    tests("tests.test_register"),
    bash(RACE, "Enter 200 invoices from 8 processes at once"),
    edit(
        "tempo/register.py",
        '''        invoices = self.invoices()
        for known in invoices:
            self.refuse(known, customer, period)
''',
        '''        # Held until the line is written: two terminals must not count alike.
        with self.path.open("a", encoding="utf-8") as out:
            fcntl.flock(out, fcntl.LOCK_EX)
            return self.enter_alone(out, customer, period, day, total)

    def enter_alone(self, out, customer, period, day, total):
        invoices = self.invoices()
        for known in invoices:
            self.refuse(known, customer, period)
''',
    ),
    edit(
        "tempo/register.py",
        '''        with self.path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\\n")
        return number
''',
        '''        out.write(json.dumps(line) + "\\n")
        out.flush()
        return number
''',
    ),
    edit("tempo/register.py", "import datetime\nimport json\n", "import datetime\nimport fcntl\nimport json\n"),
    bash("python3 race.py; rm race.py; python3 -m unittest tests.test_register", "Again, with the lock"),
    part("tempo/config.py", 12, 20),
    edit(
        "tempo/config.py",
        "    rounding: int = 1\n",
        '    rounding: int = 1\n    vat: int = 0\n    currency: str = "EUR"\n    register: pathlib.Path = pathlib.Path("register.jsonl")\n',
    ),
    edit(
        "tempo/config.py",
        '        rounding=source.getint("rounding", "minutes", fallback=1),\n',
        '''        rounding=source.getint("rounding", "minutes", fallback=1),
        vat=source.getint("invoice", "vat", fallback=0),
        currency=source.get("invoice", "currency", fallback="EUR"),
        register=path.parent / source.get("invoice", "register", fallback="register.jsonl"),
''',
    ),
    edit("tempo.ini", "[rounding]\nminutes = 5\n", "[rounding]\nminutes = 15\n\n[invoice]\nvat = 20\ncurrency = EUR\nregister = register.jsonl\n"),
    edit(
        "tests/test_cli.py",
        "    def test_a_wrong_duration_is_said",
        '''\
    def test_an_invoice_is_written_once(self):
        self.run_it("add", "acme", "1h30", "import")
        code, out = self.run_it("invoice", "acme", "--when", "month")
        self.assertEqual((code, out.splitlines()[0].split()[:2]), (0, ["Invoice", "2026-0001"]))
        code, out = self.run_it("invoice", "acme", "--when", "today")
        self.assertEqual((code, out), (2, "tempo: acme was billed for 2026-03-01 to 2026-03-31 with 2026-0001\\n"))

    def test_a_dry_run_takes_no_number(self):
        self.run_it("add", "acme", "1h30", "import")
        for _ in range(2):
            code, out = self.run_it("invoice", "acme", "--when", "month", "--dry-run")
            self.assertEqual((code, out.splitlines()[0].split()[:2]), (0, ["Invoice", "2026-0000"]))

    def test_nothing_to_bill_takes_no_number(self):
        self.assertEqual(self.run_it("invoice", "acme", "--when", "month")[0], 2)
        self.assertFalse((self.config.parent / "register.jsonl").exists())

    def test_a_wrong_duration_is_said''',
    ),
    tests("tests.test_cli", "Run the new tests, they should fail"),
    edit("tempo/cli.py", "filters, parser, report\n", "filters, invoice, parser, rates, report\n"),
    edit("tempo/cli.py", "from .model import Entry\n", "from .model import Entry\nfrom .register import Register\n"),
    edit(
        "tempo/cli.py",
        '    commands.add_parser("projects", help=',
        '''\
    bill = commands.add_parser("invoice", help="what a customer has to pay")
    bill.add_argument("customer")
    bill.add_argument("--when", required=True, help="as for report")
    bill.add_argument("--dry-run", action="store_true", help="take no number")

    commands.add_parser("projects", help=''',
    ),
    edit(
        "tempo/cli.py",
        '"export": out, "projects": projects}',
        '"export": out, "invoice": bill, "projects": projects}',
    ),
    edit(
        "tempo/cli.py",
        "def projects(options, settings, store, today):",
        '''\
def bill(options, settings, store, today):
    when = filters.period(options.when, today)
    number = 0
    entries = list(filters.select(store.load(), when))
    if not options.dry_run:
        number = Register(settings.register).enter(options.customer, when, today, "")
    made = invoice.make(
        entries, settings.rates, number, options.customer, today, settings.vat, settings.rounding
    )
    print(invoice.text(made, settings.currency))
    return 0


def projects(options, settings, store, today):''',
    ),
    tests("tests.test_cli"),
    edit(
        "tempo/cli.py",
        '''    number = 0
    entries = list(filters.select(store.load(), when))
    if not options.dry_run:
        number = Register(settings.register).enter(options.customer, when, today, "")
    made = invoice.make(
        entries, settings.rates, number, options.customer, today, settings.vat, settings.rounding
    )
''',
        '''    entries = filters.select(store.load(), when)
    made = invoice.make(
        entries, settings.rates, 0, options.customer, today, settings.vat, settings.rounding
    )
    # Only what can be billed takes a number.
    if not options.dry_run:
        total = rates.show(made.total)
        number = Register(settings.register).enter(options.customer, when, today, total)
        made = replace(made, number=number)
''',
    ),
    edit("tempo/cli.py", "import sys\n", "import sys\nfrom dataclasses import replace\n"),
    tests("", "Run all tests"),
    bash("python3 -m tempo invoice acme --when 2026-03 --dry-run", "Try it by hand"),
    write(
        "docs/invoices.md",
        """\
# Invoices

    tempo invoice acme --when 2026-03

bills the billable work of a customer: one line for each part of the project, its
minutes added up and then rounded up to `[rounding] minutes`. Rounding each entry
would bill a day of small things twice as high.

Every invoice takes the next number of its year and is entered in `register.jsonl`.
The register is locked while a number is taken, and days that were billed to a
customer, or to a part of one, are not billed again. `--dry-run` takes no number.
Keep the register under version control: nothing else remembers the numbers.
""",
    ),
    edit("README.md", "    tempo export --format csv\n", "    tempo export --format csv\n    tempo invoice acme --when 2026-03\n"),
    bash("git status --short && git diff", "See what changed"),
    commit("Invoices with numbers that are never used twice"),
    "`tempo invoice acme --when 2026-03` prints an invoice and enters it in `register.jsonl`; all tests pass and it is committed.\n\n"
    "- Minutes are added up per part of the project and then rounded. I first rounded each entry; the test showed 120 minutes instead of 105 "
    "for two entries of 52 and 51 minutes, which bills small things far too high.\n"
    "- Without a lock 8 processes got the same numbers, so the register is held with `flock` from reading to writing. With it 200 invoices "
    "got 200 numbers.\n"
    "- A number is taken only after the invoice could be made: my first version used one up when there was nothing to bill.\n"
    "- A part such as `acme/web` counts as the customer `acme` when days are compared.\n\n"
    "Next steps:\n- amounts are still floats\n- the address of the customer is not on it",
)

# ------------------------------------------------------------ cents

RATES_TEST = '''\
import unittest
from decimal import Decimal

from tempo import parser
from tempo.rates import Rates

JOURNAL = """\\
2026-03-02
  10m acme/api: a
  10m acme/web: b
  10m acme/ops: c
"""


class CostTest(unittest.TestCase):
    def test_the_total_is_the_sum_of_what_is_shown(self):
        prices = Rates({"acme": "100.00"})
        costs = [prices.cost(entry) for entry in parser.parse(JOURNAL)]
        self.assertEqual(costs, [Decimal("16.67")] * 3)
        self.assertEqual(prices.total(parser.parse(JOURNAL)), Decimal("50.01"))

    def test_half_a_cent_goes_up(self):
        (entry,) = parser.parse("2026-03-02\\n  3m acme: a\\n")
        self.assertEqual(Rates({"acme": "80.10"}).cost(entry), Decimal("4.01"))

    def test_a_part_may_have_its_own_rate(self):
        prices = Rates({"acme": "95", "acme/web": "90"}, "80")
        found = [prices.of(it) for it in ["acme", "acme/api", "acme/web/shop", "globex"]]
        self.assertEqual(found, [Decimal(95), Decimal(95), Decimal(90), Decimal(80)])
'''

turn(
    "Do the floats now, as you said: Decimal, every line rounded to cents before it is added.",
    bash(
        "python3 -c 'print([round(x, 2) for x in [10/60*100]*3], round(sum([10/60*100]*3), 2), round(3/60*80.1, 2))'",
        "Show what floats do to three lines",
    ),
    bash("grep -n 'float\\|0\\.0\\|/ 60' -r tempo", "Find every place with amounts"),
    write("tests/test_rates.py", RATES_TEST),
    tests("tests.test_rates", "Run the new tests, they should fail"),
    edit(
        "tempo/rates.py",
        '''    def __init__(self, by_project, default=0.0):
        self.by_project = dict(by_project)
        self.default = default
''',
        '''    def __init__(self, by_project, default="0"):
        self.by_project = {project: Decimal(str(rate)) for project, rate in by_project.items()}
        self.default = Decimal(str(default))
''',
    ),
    edit(
        "tempo/rates.py",
        '''            return 0.0
        return entry.minutes / 60 * self.of(entry.project)

    def total(self, entries):
        return sum(self.cost(entry) for entry in entries)
''',
        '''            return Decimal(0)
        return cost(entry.minutes, self.of(entry.project))

    def total(self, entries):
        return sum((self.cost(entry) for entry in entries), Decimal(0))


def cost(minutes, rate):
    return cents(minutes * rate / 60)


def cents(amount):
    """Rounded as on a bill: half a cent goes up."""
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)
''',
    ),
    edit("tempo/rates.py", '"""What work costs."""\n', '"""What work costs."""\n\nfrom decimal import ROUND_HALF_UP, Decimal\n'),
    tests("", "Run all tests"),
    edit("tempo/report.py", "    cost: float = 0.0\n", "    cost: Decimal = Decimal(0)\n"),
    edit("tempo/report.py", "from dataclasses import dataclass\n", "from dataclasses import dataclass\nfrom decimal import Decimal\n"),
    edit("tempo/invoice.py", "        return self.minutes / 60 * self.rate\n", "        return rates.cost(self.minutes, self.rate)\n"),
    edit("tempo/invoice.py", "        return self.net * self.vat_percent / 100\n", "        return rates.cents(self.net * self.vat_percent / 100)\n"),
    edit("tests/test_invoice.py", "(258.0, 51.6, 309.6)", '(Decimal("258.00"), Decimal("51.60"), Decimal("309.60"))'),
    bash(
        "sed -i 's/^import unittest$/import unittest\\nfrom decimal import Decimal/' tests/test_invoice.py && python3 -m unittest",
        "Import Decimal in the test and run everything",
    ),
    edit("tempo/config.py", "    prices = {project: float(price) for project, price in prices.items()}\n", ""),
    edit("tempo/config.py", 'prices.pop("default", 0.0)', 'prices.pop("default", "0")'),
    tests(),
    bash("python3 -m tempo report --when 2026-03 && git diff --stat", "See that the report is still right"),
    commit("Amounts are decimal: the total is the sum of what is shown"),
    "Amounts are `Decimal` from the config to the invoice. Each line is rounded to cents, half a cent upwards, before it is added, so three "
    "lines of 16.67 make 50.01 and not 50.00. `rates.cost` and `rates.cents` are the only places that round. The rate is read as text from "
    "tempo.ini, never through a float.",
)

# ------------------------------------------------------------ a refactoring

TABLE = '''\
"""Columns of text: the first to the left, the others to the right."""


def table(rows, ruled=()):
    """Aligned lines; a rule is drawn above the rows with these numbers."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    whole = sum(widths) + 2 * (len(widths) - 1)
    out = []
    for number, row in enumerate(rows):
        if number in ruled:
            out.append("-" * whole)
        first, *rest = (cell.rjust(width) for cell, width in zip(row, widths))
        out.append("  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
    return "\\n".join(out)
'''

TABLE_TEST = '''\
import unittest

from tempo.table import table


class TableTest(unittest.TestCase):
    def test_the_first_column_is_to_the_left(self):
        self.assertEqual(table([["a", "1"], ["long", "100"]]), "a       1\\nlong  100")

    def test_a_rule_is_as_wide_as_the_table(self):
        self.assertEqual(table([["a", "1"], ["b", "2"]], ruled=[1]), "a  1\\n----\\nb  2")
'''

SUMS = '''\
"""Entries added up under a name."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass
class Sum:
    name: str
    minutes: int = 0
    billable: int = 0
    cost: Decimal = Decimal(0)

    def take(self, entry, prices):
        self.minutes += entry.minutes
        if entry.billable:
            self.billable += entry.minutes
        self.cost += prices.cost(entry)


def week(entry):
    year, number, _ = entry.day.isocalendar()
    return [f"{year}-W{number:02}"]


# The names under which an entry counts. With tags these may be several.
BY = {
    "project": lambda entry: [entry.project],
    "tag": lambda entry: sorted(entry.tags) or ["(none)"],
    "day": lambda entry: [entry.day.isoformat()],
    "week": week,
}


def add_up(entries, by, prices):
    """One sum a name, and the total, in which each entry counts once."""
    sums, total = {}, Sum("total")
    for entry in entries:
        for name in BY[by](entry):
            sums.setdefault(name, Sum(name)).take(entry, prices)
        total.take(entry, prices)
    return [sums[name] for name in sorted(sums)], total
'''

REPORT = '''\
"""How the sums of a journal look."""

from . import durations, rates
from .sums import add_up
from .table import table


def text(entries, by, prices):
    entries = list(entries)
    if not entries:
        return "nothing was written down"
    sums, total = add_up(entries, by, prices)
    rows = [[by, "time", "billable", "cost"], *(row(it) for it in [*sums, total])]
    return table(rows, ruled=[len(rows) - 1])


def row(it):
    return [it.name, durations.show(it.minutes), durations.show(it.billable), rates.show(it.cost)]
'''

turn(
    "report.py does three things: it groups, it adds up and it draws a table. Split it, without changing what comes out.",
    part("tempo/report.py", 1, 76),
    bash("grep -rn 'report\\.' tempo tests --include=*.py", "Who uses the module"),
    bash("for by in project tag day week; do python3 -m tempo report --by $by; done > before.txt; wc before.txt", "Keep what comes out today"),
    write("tempo/table.py", TABLE),
    write("tests/test_table.py", TABLE_TEST),
    tests("-v tests.test_table"),
    write("tempo/sums.py", SUMS),
    write("tempo/report.py", REPORT),
    tests(),
    edit("tempo/cli.py", "choices=report.BY,", "choices=list(sums.BY),"),
    edit("tempo/cli.py", "parser, rates, report\n", "parser, rates, report, sums\n"),
    tests(),
    bash(
        "for by in project tag day week; do python3 -m tempo report --by $by; done | diff before.txt - && echo same && rm before.txt",
        "Compare with what came out before",
    ),
    bash("git diff --stat && git diff tempo/cli.py && wc -l tempo/*.py", "See what changed"),
    commit("Split the report into sums and a table"),
    "`tempo/sums.py` groups and adds up, `tempo/table.py` aligns columns and knows nothing of time, and `tempo/report.py` is left with the "
    "words of the report: 20 lines. The chain of ifs in `names` became the mapping `BY`, which is also what the command line offers. The "
    "four reports over all journals are the same byte for byte.",
)

# ------------------------------------------------------------ speed, with a dead end

GROW = """\
mkdir -p grown && python3 - <<'END'
import pathlib
months = [pathlib.Path(f"journal/2026-0{it}.txt").read_text() for it in (1, 2)]
for year in range(1990, 2026):
    for month in range(1, 13):
        text = months[month % 2].replace("2026-01", f"{year}-{month:02}").replace("2026-02", f"{year}-{month:02}")
        pathlib.Path(f"grown/{year}-{month:02}.txt").write_text(text)
END
printf '[journal]\\nfolder = grown\\n' > grown.ini; ls grown | wc -l; head -12 grown/2025-12.txt"""

PROFILE = "python3 -m cProfile -s tottime -m tempo --config grown.ini report --when 2025-12 | head -28"

turn(
    "With many years of journals a report takes long, even of one month. See whether something simple helps.",
    bash(GROW, "Make 36 years of journals"),
    bash(PROFILE, "Profile the report of one month"),
    edit(
        "tempo/store.py",
        '''            parser.parse(file.read_text(encoding="utf-8"), file.name, into=journal)
        return journal
''',
        '''            known = parsed(file, int(file.stat().st_mtime))
            journal.entries += known.entries
            journal.problems += known.problems
        return journal
''',
    ),
    edit(
        "tempo/store.py",
        "\n\nclass Store:",
        '''

@functools.lru_cache(maxsize=None)
def parsed(file, modified):
    return parser.parse(file.read_text(encoding="utf-8"), file.name)


class Store:''',
    ),
    edit("tempo/store.py", "import pathlib\n", "import functools\nimport pathlib\n"),
    edit(
        "tests/test_store.py",
        "    def test_months_are_read_in_order",
        '''\
    def test_what_was_added_is_there_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            store = Store(folder)
            for number in range(3):
                store.append(entry(f"1h acme: number {number}"))
                self.assertEqual(len(store.load()), number + 1)

    def test_months_are_read_in_order''',
    ),
    tests("tests.test_store"),
    bash("git checkout tempo/store.py && git status --short", "Drop the cache"),
    read("tempo/store.py"),
    edit(
        "tempo/store.py",
        '''    def files(self):
        return sorted(self.folder.glob("????-??.txt"))

    def load(self):
        """Everything, oldest first."""
        journal = Journal()
        for file in self.files():
''',
        '''    def files(self, when=None):
        """The journals of a period: a month is the name of its file."""
        files = sorted(self.folder.glob("????-??.txt"))
        if when is None:
            return files
        first, last = f"{when.first:%Y-%m}", f"{when.last:%Y-%m}"
        return [file for file in files if first <= file.stem <= last]

    def load(self, when=None):
        """Everything, or the months that a period touches; oldest first."""
        journal = Journal()
        for file in self.files(when):
''',
    ),
    edit(
        "tempo/cli.py",
        '''    journal = store.load()
    for problem in journal.problems:
        print(f"tempo: {problem}", file=sys.stderr)
    when = filters.period(options.when, today) if options.when else None
''',
        '''    when = filters.period(options.when, today) if options.when else None
    journal = store.load(when)
    for problem in journal.problems:
        print(f"tempo: {problem}", file=sys.stderr)
''',
    ),
    edit("tempo/cli.py", "    entries = filters.select(store.load(), when)\n", "    entries = filters.select(store.load(when), when)\n"),
    tests(),
    bash(PROFILE + "; rm -r grown grown.ini", "Profile again, then clean up"),
    commit("A report of a month reads only that month"),
    "A report of one month reads one file now, because a file is named after its month: `Store.load(when)` leaves the others closed. With "
    "432 journals nearly all of the time went into parsing what was then filtered out.\n\nI first tried a cache of parsed files by their "
    "time of modification, but an entry that is added within the same second was not seen, and a cache inside of one process helps a "
    "command line very little, so I dropped it.",
)

# ------------------------------------------------------------ a check

CHECK_TEST = '''\
import unittest

from tempo import check, parser


class CheckTest(unittest.TestCase):
    def found(self, text):
        return [str(it) for it in check.check(parser.parse(text))]

    def test_spans_of_a_day_that_overlap_are_said(self):
        text = "2026-03-02\\n  09:00-10:30 acme: a\\n  10:00-11:00 globex: b\\n  11:00-12:00 acme: c\\n"
        self.assertEqual(self.found(text), ["2026-03-02: 10:00-11:00 globex overlaps with 09:00-10:30 acme"])

    def test_a_night_may_run_into_the_next_morning(self):
        text = "2026-03-02\\n  22:00-02:00 acme: a\\n2026-03-03\\n  01:00-03:00 globex: b\\n"
        self.assertEqual(self.found(text), ["2026-03-03: 01:00-03:00 globex overlaps with 22:00-02:00 acme of the day before"])

    def test_a_day_has_24_hours(self):
        self.assertEqual(self.found("2026-03-02\\n  20h acme: a\\n  5h own: b\\n"), ["2026-03-02: 25h00 are more than a day has"])
'''

CHECK = '''\
"""What cannot be true in a journal."""

import datetime
from dataclasses import dataclass

from . import durations
from .model import DAY, minutes_of


@dataclass(frozen=True)
class Doubt:
    day: datetime.date
    what: str

    def __str__(self):
        return f"{self.day}: {self.what}"


def check(journal):
    """Spans that overlap, also with the night before, and days that are too long."""
    spans = []
    for day, entries in journal.days().items():
        minutes = sum(entry.minutes for entry in entries)
        if minutes > DAY:
            yield Doubt(day, f"{durations.show(minutes)} are more than a day has")
        spans += sorted((place(entry), entry) for entry in entries if entry.span)
    for (_, before), (_, entry) in zip(spans, spans[1:]):
        if place(before)[1] > place(entry)[0]:
            night = " of the day before" if before.day != entry.day else ""
            said = f"{entry.span} {entry.project} overlaps with {before.span} {before.project}{night}"
            yield Doubt(entry.day, said)


def place(entry):
    """Start and end in minutes on one line for all days."""
    start = entry.day.toordinal() * DAY + minutes_of(entry.span.start)
    return start, start + entry.minutes
'''

turn(
    "Add `tempo check`: it lists entries that overlap and days with more than 24 hours. Exit code 1 if there is any.",
    write("tests/test_check.py", CHECK_TEST),
    write("tempo/check.py", CHECK),
    tests("-v tests.test_check"),
    edit(
        "tempo/cli.py",
        '    commands.add_parser("projects", help=',
        '    commands.add_parser("check", help="what cannot be true")\n    commands.add_parser("projects", help=',
    ),
    edit(
        "tempo/cli.py",
        "    run = {",
        '    if options.command == "check":\n        return doubts(store)\n    run = {',
    ),
    edit(
        "tempo/cli.py",
        "def projects(options, settings, store, today):",
        '''\
def doubts(store):
    found = list(check.check(store.load()))
    for doubt in found:
        print(doubt)
    return 1 if found else 0


def projects(options, settings, store, today):''',
    ),
    edit("tempo/cli.py", "from . import __version__, config,", "from . import __version__, check, config,"),
    bash("python3 -m tempo add acme/web 14:30-16:00 'hotfix' --day 2026-02-24 && python3 -m tempo check", "Try it with an overlap"),
    bash("git checkout journal && python3 -m tempo check; echo exit $?", "Take the overlap back"),
    tests(),
    commit("Find what cannot be true in a journal"),
    "`tempo check` lists overlapping spans and days of more than 24 hours and exits with 1 if there are any. Spans are compared on one line "
    "of minutes for all days, so a night that runs into the next morning is found as well; `Span.overlaps` could not do that, because it "
    "knows only one day. In your journals there is nothing to complain about.",
)

# ------------------------------------------------------------ a release

turn(
    "Make it 0.5.0: version, a changelog for people, tag.",
    bash("git log --format='%h %s%n%b' --stat", "What happened since 0.4.0"),
    read("tempo/__init__.py"),
    edit("tempo/__init__.py", "0.4.0", "0.5.0"),
    tests(),
    edit("tests/test_cli.py", '"tempo 0.4.0\\n"', 'f"tempo {__version__}\\n"'),
    edit("tests/test_cli.py", "from tempo import cli\n", "from tempo import __version__, cli\n"),
    write(
        "CHANGELOG.md",
        """\
# Changelog

## 0.5.0

- `tempo invoice` writes invoices; see docs/invoices.md
- `tempo check` finds overlapping entries and days that are too long
- Amounts are decimal: the total of a report is the sum of its lines
- Work past midnight counts for the day on which it began
- A report of a month reads only that month
""",
    ),
    bash("python3 -m unittest && git add -A && git commit -m 'Version 0.5.0' && git tag v0.5.0", "Test, commit and tag"),
    "0.5.0 is committed and tagged as v0.5.0. The test of `--version` compared with a fixed number and failed; it compares with "
    "`tempo.__version__` now.",
)

# ------------------------------------------------------------ a last look

turn(
    "Last thing for today: is anything left lying around, and do all tests pass from a clean checkout?",
    bash("git status --short && git stash list && git tag", "Anything not committed"),
    bash("git clone --quiet . fresh && cd fresh && python3 -m unittest -v; cd .. && rm -rf fresh", "Test a clean checkout"),
    part("tempo/cli.py", 55, 80),
    bash("git show --stat --format='%h %s' v0.5.0 && wc -l tempo/*.py tests/*.py", "The size of it"),
    "Nothing is left over: the tree is clean and all tests pass in a fresh clone. One wart I would clean up next time: `tempo check` has "
    "its own branch in `cli.main`, because it is the only command that needs neither settings nor today.\n\n"
    "Next steps:\n- put `check` into the table of commands\n- the customer's address on the invoice",
)
