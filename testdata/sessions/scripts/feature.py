# A flag for a small program, tests first; one design is tried and dropped.

PROJECT = "shelf"

FILES = {
    "shelf.py": '''\
"""Bookmarks in one JSON file."""

import argparse
import json
import pathlib
import sys


def load(path):
    file = pathlib.Path(path)
    return json.loads(file.read_text()) if file.exists() else []


def save(path, bookmarks):
    pathlib.Path(path).write_text(json.dumps(bookmarks, indent=1))


def add(bookmarks, url, title):
    return bookmarks + [{"url": url, "title": title}]


def select(bookmarks):
    return sorted(bookmarks, key=lambda it: it["title"])


def main(arguments):
    parser = argparse.ArgumentParser(prog="shelf")
    parser.add_argument("--file", default="shelf.json")
    commands = parser.add_subparsers(dest="command", required=True)
    adding = commands.add_parser("add")
    adding.add_argument("url")
    adding.add_argument("title")
    commands.add_parser("list")
    options = parser.parse_args(arguments)
    bookmarks = load(options.file)
    if options.command == "add":
        save(options.file, add(bookmarks, options.url, options.title))
    else:
        for it in select(bookmarks):
            print(it["title"], it["url"])


if __name__ == "__main__":
    main(sys.argv[1:])
''',
    "test_shelf.py": '''\
import unittest

import shelf


class ListTest(unittest.TestCase):
    def test_bookmarks_are_listed_by_title(self):
        bookmarks = shelf.add(shelf.add([], "http://b", "B"), "http://a", "A")
        self.assertEqual([it["title"] for it in shelf.select(bookmarks)], ["A", "B"])


if __name__ == "__main__":
    unittest.main()
''',
    "README.md": "# shelf\n\n    shelf add URL TITLE\n    shelf list\n",
}

TURNS = [
    {
        "user": "I want tags on bookmarks: `shelf add URL TITLE --tag a --tag b`, and `shelf list --tag a` to filter. "
        "Let's keep the tags in the same JSON file instead of a second one, I don't want to migrate anything. "
        "Old files without tags have to keep working. Tests first please.",
        "model": [
            read("shelf.py"),
            read("test_shelf.py"),
            edit(
                "test_shelf.py",
                "\n\nif __name__",
                '''
    def test_a_tag_selects_the_bookmarks_that_have_it(self):
        bookmarks = shelf.add([], "http://a", "A", tags=["python", "c, c++"])
        bookmarks = shelf.add(bookmarks, "http://b", "B")
        self.assertEqual([it["title"] for it in shelf.select(bookmarks, tag="python")], ["A"])
        self.assertEqual([it["title"] for it in shelf.select(bookmarks, tag="c, c++")], ["A"])

    def test_a_bookmark_of_an_old_file_has_no_tags(self):
        old = [{"url": "http://a", "title": "A"}]
        self.assertEqual(shelf.select(old, tag="python"), [])


if __name__''',
            ),
            bash("python3 -m unittest", "Run the new tests, they should fail"),
            edit(
                "shelf.py",
                '''def add(bookmarks, url, title):
    return bookmarks + [{"url": url, "title": title}]


def select(bookmarks):
    return sorted(bookmarks, key=lambda it: it["title"])
''',
                '''def add(bookmarks, url, title, tags=()):
    return bookmarks + [{"url": url, "title": title, "tags": ",".join(tags)}]


def select(bookmarks, tag=None):
    if tag is not None:
        bookmarks = [it for it in bookmarks if tag in it.get("tags", "").split(",")]
    return sorted(bookmarks, key=lambda it: it["title"])
''',
            ),
            bash("python3 -m unittest", "Run the tests"),
            bash("git checkout shelf.py", "Drop the comma-separated tags"),
            read("shelf.py"),
            edit(
                "shelf.py",
                '''def add(bookmarks, url, title):
    return bookmarks + [{"url": url, "title": title}]


def select(bookmarks):
    return sorted(bookmarks, key=lambda it: it["title"])
''',
                '''def add(bookmarks, url, title, tags=()):
    return bookmarks + [{"url": url, "title": title, "tags": list(tags)}]


def select(bookmarks, tag=None):
    if tag is not None:
        bookmarks = [it for it in bookmarks if tag in it.get("tags", [])]
    return sorted(bookmarks, key=lambda it: it["title"])
''',
            ),
            bash("python3 -m unittest", "Run the tests"),
            edit(
                "shelf.py",
                '''    adding.add_argument("title")
    commands.add_parser("list")
''',
                '''    adding.add_argument("title")
    adding.add_argument("--tag", action="append", default=[])
    listing = commands.add_parser("list")
    listing.add_argument("--tag")
''',
            ),
            edit(
                "shelf.py",
                "save(options.file, add(bookmarks, options.url, options.title))",
                "save(options.file, add(bookmarks, options.url, options.title, options.tag))",
            ),
            edit("shelf.py", "for it in select(bookmarks):", "for it in select(bookmarks, options.tag):"),
            bash(
                "f=$(mktemp -u); python3 shelf.py --file $f add http://a A --tag x && python3 shelf.py --file $f list --tag x; rm -f $f",
                "Try the flags by hand",
            ),
            "Tags work on `add` and `list`, and the three tests pass. They are a list under `tags` in the same file; "
            "a bookmark without that key counts as untagged, so old files need nothing.\n\n"
            "I first tried storing the tags as one comma-separated string, but a tag like `c, c++` was torn apart at its comma, "
            "so I went back to a list.\n\n"
            "Next steps:\n- decide whether tags are case-sensitive\n- mention tags in the README",
        ],
    },
    {
        "user": "Case-insensitive. And add a `shelf tags` command that lists every tag with how often it is used, most used first. "
        "README as well, then commit.",
        "model": [
            edit(
                "test_shelf.py",
                "\n\nif __name__",
                '''
    def test_a_tag_is_found_whatever_its_case(self):
        bookmarks = shelf.add([], "http://a", "A", tags=["Python"])
        self.assertEqual(len(shelf.select(bookmarks, tag="python")), 1)

    def test_tags_are_counted_most_used_first(self):
        bookmarks = shelf.add([], "http://a", "A", tags=["x", "Y"])
        bookmarks = shelf.add(bookmarks, "http://b", "B", tags=["y"])
        self.assertEqual(shelf.tags(bookmarks), [("y", 2), ("x", 1)])


if __name__''',
            ),
            bash("python3 -m unittest", "Run the new tests, they should fail"),
            edit("shelf.py", "import sys\n", "import sys\nfrom collections import Counter\n"),
            edit(
                "shelf.py",
                'bookmarks = [it for it in bookmarks if tag in it.get("tags", [])]',
                "bookmarks = [it for it in bookmarks if tag.lower() in tags_of(it)]",
            ),
            edit(
                "shelf.py",
                "def main(arguments):",
                '''def tags_of(bookmark):
    return [tag.lower() for tag in bookmark.get("tags", [])]


def tags(bookmarks):
    """Every tag and how often it is used, most used first."""
    counter = Counter(tag for it in bookmarks for tag in tags_of(it))
    return sorted(counter.items(), key=lambda it: (-it[1], it[0]))


def main(arguments):''',
            ),
            edit("shelf.py", '    listing.add_argument("--tag")\n', '    listing.add_argument("--tag")\n    commands.add_parser("tags")\n'),
            edit(
                "shelf.py",
                "    else:\n        for it in select",
                '    elif options.command == "tags":\n        for tag, used in tags(bookmarks):\n            print(used, tag)\n    else:\n        for it in select',
            ),
            bash("python3 -m unittest", "Run the tests"),
            read("README.md"),
            edit(
                "README.md",
                "    shelf add URL TITLE\n    shelf list\n",
                "    shelf add URL TITLE [--tag TAG ...]\n    shelf list [--tag TAG]\n    shelf tags\n",
            ),
            bash('git add -A && git commit -m "Add tags: --tag on add and list, and a tags command"', "Commit"),
            "`shelf tags` lists each tag with its count, and tags are compared in lower case. I chose to keep the case the user typed "
            "in the file and to fold it only when comparing, because a listing should show `Python` as it was written. "
            "Five tests pass; the README names the new options.",
        ],
    },
]
