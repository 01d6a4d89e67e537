# One module becomes three; behaviour stays. A base class is tried and taken out again.

PROJECT = "ledger"

FILES = {
    "ledger/__init__.py": "",
    "ledger/statement.py": '''\
"""Reads a bank statement and prints it as text or CSV."""

import csv
import io


class Row:
    def __init__(self, day, text, cents):
        self.day = day
        self.text = text
        self.cents = cents


def parse(source):
    rows = []
    for record in csv.reader(io.StringIO(source), delimiter=";"):
        if not record or record[0].startswith("#"):
            continue
        day, text, amount = record
        rows.append(Row(day, text.strip(), round(float(amount.replace(",", ".")) * 100)))
    return rows


def as_text(rows):
    lines = []
    for row in rows:
        lines.append(f"{row.day} {row.text:<20} {row.cents / 100:>10.2f}")
    lines.append(f"{'':<10} {'total':<20} {sum(row.cents for row in rows) / 100:>10.2f}")
    return "\\n".join(lines)


def as_csv(rows):
    out = io.StringIO()
    writer = csv.writer(out)
    for row in rows:
        writer.writerow([row.day, row.text, f"{row.cents / 100:.2f}"])
    return out.getvalue()
''',
    "tests/__init__.py": "",
    "tests/test_statement.py": '''\
import copy
import unittest

from ledger import statement

SOURCE = "# bank\\n2026-05-02;Rent;-900,00\\n2026-05-03;Salary;2500,50\\n"


class StatementTest(unittest.TestCase):
    def test_rows_are_parsed_to_cents(self):
        self.assertEqual([row.cents for row in statement.parse(SOURCE)], [-90000, 250050])

    def test_text_ends_with_the_total(self):
        self.assertTrue(statement.as_text(statement.parse(SOURCE)).endswith("1600.50"))

    def test_csv_has_points(self):
        self.assertIn("-900.00", statement.as_csv(statement.parse(SOURCE)))

    def test_a_row_can_be_corrected(self):
        row = copy.copy(statement.parse(SOURCE)[0])
        row.text = "Rent May"
        self.assertEqual(row.text, "Rent May")


if __name__ == "__main__":
    unittest.main()
''',
}

PARSE = '''\
"""From a bank's statement to rows."""

import csv
import io


class Row:
    def __init__(self, day, text, cents):
        self.day = day
        self.text = text
        self.cents = cents


def parse(source):
    rows = []
    for record in csv.reader(io.StringIO(source), delimiter=";"):
        if not record or record[0].startswith("#"):
            continue
        day, text, amount = record
        rows.append(Row(day, text.strip(), round(float(amount.replace(",", ".")) * 100)))
    return rows
'''

RENDER = '''\
"""Rows as text and as CSV."""

import csv
import io


def as_text(rows):
    lines = [f"{row.day} {row.text:<20} {amount(row.cents):>10}" for row in rows]
    total = sum(row.cents for row in rows)
    lines.append(f"{'':<10} {'total':<20} {amount(total):>10}")
    return "\\n".join(lines)


def as_csv(rows):
    out = io.StringIO()
    writer = csv.writer(out)
    for row in rows:
        writer.writerow([row.day, row.text, amount(row.cents)])
    return out.getvalue()


def amount(cents):
    return f"{cents / 100:.2f}"
'''

TURNS = [
    {
        "user": "ledger/statement.py does too much. Split it into parsing and rendering, without changing what it prints. "
        "Keep `ledger.statement` importable, other scripts use it.",
        "model": [
            read("ledger/statement.py"),
            read("tests/test_statement.py"),
            bash("python3 -m unittest 2>&1 | tail -3", "Tests before the change"),
            write("ledger/parse.py", PARSE),
            write("ledger/render.py", RENDER),
            write(
                "ledger/statement.py",
                '"""Kept for scripts that import it: parsing and rendering under one name."""\n\n'
                "from ledger.parse import Row\nfrom ledger.render import as_csv, as_text\n\n"
                '__all__ = ["Row", "as_csv", "as_text", "parse"]\n',
            ),
            bash("python3 -m unittest 2>&1 | tail -12", "Run the tests"),
            edit("ledger/statement.py", "from ledger.parse import Row\n", "from ledger.parse import Row, parse\n"),
            bash("python3 -m unittest 2>&1 | tail -3", "Run the tests"),
            bash('git add -A && git commit -qm "refactor: split statement into parse and render"', "Commit the split"),
            "`ledger/parse.py` reads statements, `ledger/render.py` prints them, and `ledger/statement.py` only re-exports both, "
            "so existing imports keep working. The cents-to-text formatting that both renderers repeated is now one function, `amount`. "
            "The four tests pass unchanged.",
        ],
    },
    {
        "user": "Nice. Can Row become a dataclass? And as_text / as_csv look like they want a common Renderer base class, see if that is any better.",
        "model": [
            read("ledger/parse.py"),
            edit(
                "ledger/parse.py",
                "class Row:\n    def __init__(self, day, text, cents):\n        self.day = day\n        self.text = text\n        self.cents = cents\n",
                "@dataclass(frozen=True)\nclass Row:\n    day: str\n    text: str\n    cents: int\n",
            ),
            edit("ledger/parse.py", "import csv\nimport io\n", "import csv\nimport io\nfrom dataclasses import dataclass\n"),
            bash("python3 -m unittest", "Run the tests"),
            edit("ledger/parse.py", "@dataclass(frozen=True)\n", "@dataclass\n"),
            bash("python3 -m unittest", "Run the tests"),
            bash('git commit -qam "refactor: Row is a dataclass"', "Commit the dataclass"),
            read("ledger/render.py"),
            write(
                "ledger/render.py",
                '''\
"""Rows as text and as CSV."""

import csv
import io


class Renderer:
    def __init__(self):
        self.out = io.StringIO()

    def row(self, row):
        raise NotImplementedError

    def end(self, rows):
        pass

    def render(self, rows):
        for row in rows:
            self.row(row)
        self.end(rows)
        return self.out.getvalue()


class TextRenderer(Renderer):
    def row(self, row):
        self.out.write(f"{row.day} {row.text:<20} {amount(row.cents):>10}\\n")

    def end(self, rows):
        self.out.write(f"{'':<10} {'total':<20} {amount(sum(row.cents for row in rows)):>10}\\n")


class CsvRenderer(Renderer):
    def row(self, row):
        csv.writer(self.out).writerow([row.day, row.text, amount(row.cents)])


def as_text(rows):
    return TextRenderer().render(rows)


def as_csv(rows):
    return CsvRenderer().render(rows)


def amount(cents):
    return f"{cents / 100:.2f}"
''',
            ),
            bash("python3 -m unittest", "Run the tests"),
            bash("git diff --stat", "How much longer is it?"),
            bash("git restore ledger/render.py", "Take the base class out again"),
            bash("python3 -m unittest", "Run the tests"),
            "`Row` is a dataclass now and that is committed. It is not frozen: `test_a_row_can_be_corrected` assigns to `row.text`, "
            "and with `frozen=True` that raised FrozenInstanceError.\n\n"
            "The base class I tried and took out again. A `Renderer` with two subclasses made the file longer and changed the output: "
            "every text ended in a newline that was not there before, and `test_text_ends_with_the_total` failed.",
        ],
    },
    {
        "user": "Agreed, don't use inheritance here. Plain functions it is. One more: `amount` should be called `euros`.",
        "model": [
            bash("sed -i 's/\\bamount(/euros(/g' ledger/render.py && grep -n euros ledger/render.py", "Rename amount to euros"),
            bash("python3 -m unittest", "Run the tests"),
            bash('git commit -qam "refactor: rename amount to euros"', "Commit the rename"),
            "Renamed in `ledger/render.py`, the only file that used it. Tests pass, committed.",
        ],
    },
]
