# A wrong number in a report: two wrong guesses, then the cause.

PROJECT = "tally"

FILES = {
    "tally/__init__.py": "",
    "tally/months.py": '''\
"""Which month an entry belongs to."""

from datetime import datetime, timezone


def month_of(entry):
    """The month of an entry, as in 2026-03."""
    moment = datetime.fromtimestamp(entry["at"], timezone.utc)
    return moment.strftime("%Y-%m")
''',
    "tally/report.py": '''\
"""Hours per month."""

from functools import lru_cache

from tally.months import month_of


def hours(entry):
    return round(entry["seconds"] / 3600, 2)


@lru_cache(maxsize=None)
def rate_for(customer):
    return {"acme": 90, "initech": 75}.get(customer, 60)


def totals(entries):
    """Billed amount per month."""
    by_month = {}
    for entry in entries:
        month = month_of(entry)
        by_month[month] = by_month.get(month, 0) + hours(entry) * rate_for(entry["customer"])
    return by_month
''',
    "tests/__init__.py": "",
    "tests/test_report.py": '''\
import unittest
from datetime import datetime, timedelta, timezone

from tally.report import totals

HELSINKI = timezone(timedelta(hours=2))


def entry(year, month, day, hour, hours=1, customer="acme"):
    at = datetime(year, month, day, hour, tzinfo=HELSINKI).timestamp()
    return {"at": at, "utc_offset": 7200, "seconds": hours * 3600, "customer": customer}


class TotalsTest(unittest.TestCase):
    def test_hours_are_billed_at_the_customers_rate(self):
        self.assertEqual(totals([entry(2026, 3, 10, 9, hours=2)]), {"2026-03": 180})

    def test_march_is_billed_whole(self):
        entries = [entry(2026, 3, 1, 1, hours=3), entry(2026, 3, 31, 20, hours=4)]
        self.assertEqual(totals(entries), {"2026-03": 630})


if __name__ == "__main__":
    unittest.main()
''',
}

TURNS = [
    {
        "user": "The March invoice for acme is 270 short: totals() puts part of it into February. "
        "test_march_is_billed_whole shows it. I suspect the rounding in hours(), but I have not looked closely. "
        "Find the cause and fix it.",
        "model": [
            bash("python3 -m unittest", "Run the tests"),
            read("tally/report.py"),
            read("tests/test_report.py"),
            edit("tally/report.py", 'return round(entry["seconds"] / 3600, 2)', 'return entry["seconds"] / 3600'),
            bash("python3 -m unittest tests.test_report.TotalsTest.test_march_is_billed_whole", "Run the failing test"),
            edit("tally/report.py", 'return entry["seconds"] / 3600', 'return round(entry["seconds"] / 3600, 2)'),
            edit("tally/report.py", "@lru_cache(maxsize=None)\ndef rate_for", "def rate_for"),
            bash("python3 -m unittest tests.test_report.TotalsTest.test_march_is_billed_whole", "Run the failing test"),
            bash("git checkout -- tally/report.py", "Put the rate cache back, it changes nothing"),
            read("tally/months.py"),
            bash(
                "python3 -c \"from tests.test_report import entry; from tally.months import month_of; "
                "print(month_of(entry(2026, 3, 1, 1)))\"",
                "Month of 1 March 01:00 in Helsinki",
            ),
            edit(
                "tally/months.py",
                'from datetime import datetime, timezone\n',
                'from datetime import datetime, timedelta, timezone\n',
            ),
            edit(
                "tally/months.py",
                'moment = datetime.fromtimestamp(entry["at"], timezone.utc)',
                'zone = timezone(timedelta(seconds=entry["utc_offset"]))\n    moment = datetime.fromtimestamp(entry["at"], zone)',
            ),
            bash("python3 -m unittest", "Run all tests"),
            "Found it, and it is not the rounding. The cause is in `month_of`: it reads the timestamp in UTC, so 1 March "
            "01:00 in Helsinki is 28 February 23:00 and three hours land in the wrong month. It now uses the entry's own "
            "`utc_offset`, and all tests pass.\n\n"
            "Two guesses were wrong and are undone:\n\n"
            "- I tried dropping the `round` in `hours`, but the total stayed 270 short, so rounding is not involved.\n"
            "- I tried removing the `lru_cache` from `rate_for`; it made no difference because the rates never change within a run.\n\n"
            "Next steps:\n- cover the change of year\n- commit",
        ],
    },
    {
        "user": "Good catch. Add a test for the change of year too, then commit both.",
        "model": [
            edit(
                "tests/test_report.py",
                "\n\nif __name__",
                '''
    def test_new_years_night_belongs_to_january(self):
        self.assertEqual(totals([entry(2026, 1, 1, 0)]), {"2026-01": 90})


if __name__''',
            ),
            bash("python3 -m unittest", "Run all tests"),
            bash('git add -A && git commit -m "fix: bill an entry in the month of its own time zone"', "Commit the fix"),
            "`test_new_years_night_belongs_to_january` covers the change of year; all three tests pass. Committed together with the fix.",
        ],
    },
    {
        "user": "Is there anything else in the code that reads timestamps in UTC?",
        "model": [
            bash("grep -rn 'utc' --include=*.py .", "Look for other uses of UTC"),
            bash("git log --oneline -- tally", "History of the package"),
            "No. `month_of` in tally/months.py is the only place in the package that turns a timestamp into a date; "
            "the other hits are the tests' own fixtures.",
        ],
    },
]
