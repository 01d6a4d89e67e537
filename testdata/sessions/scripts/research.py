# Nothing is changed: what does the code do, before anyone builds on it?

PROJECT = "runner"

FILES = {
    "runner/__init__.py": "",
    "runner/store.py": '''\
"""Jobs in SQLite."""

import sqlite3

SCHEMA = """
create table if not exists jobs (
    id integer primary key,
    payload text not null,
    state text not null default 'waiting',
    started_at real
)
"""


def connect(path):
    db = sqlite3.connect(path, timeout=5)
    db.execute(SCHEMA)
    return db


def claim(db, now):
    """The next waiting job, marked as running."""
    row = db.execute("select id, payload from jobs where state = 'waiting' order by id limit 1").fetchone()
    if row is None:
        return None
    db.execute("update jobs set state = 'running', started_at = ? where id = ?", (now, row[0]))
    db.commit()
    return row


def finish(db, job_id):
    db.execute("update jobs set state = 'done' where id = ?", (job_id,))
    db.commit()


def recover(db, now, after=600):
    """Jobs of a worker that died wait again."""
    db.execute("update jobs set state = 'waiting' where state = 'running' and started_at < ?", (now - after,))
    db.commit()
''',
    "runner/worker.py": '''\
"""Runs jobs, one after the other."""

import time

from runner import store
from runner.handlers import HANDLERS


def run_forever(path):
    db = store.connect(path)
    store.recover(db, time.time())
    while True:
        job = store.claim(db, time.time())
        if job is None:
            time.sleep(1)
            continue
        job_id, payload = job
        kind, _, rest = payload.partition(":")
        HANDLERS[kind](rest)
        store.finish(db, job_id)
''',
    "runner/handlers.py": '''\
"""What jobs do."""

from runner import mail


def send_invoice(number):
    mail.send("invoice", number)


def rebuild_index(_rest):
    pass


HANDLERS = {"invoice": send_invoice, "index": rebuild_index}
''',
    "runner/mail.py": '''\
"""Mail over SMTP."""

import smtplib

TIMEOUT = None


def send(template, number):
    with smtplib.SMTP("localhost", 25, timeout=TIMEOUT or 300) as server:
        server.sendmail("billing@example.com", ["customer@example.com"], f"{template} {number}")
''',
    "pyproject.toml": '[project]\nname = "runner"\nversion = "0.4.2"\nrequires-python = ">=3.9"\ndependencies = []\n',
    "docs/operations.md": "# Operations\n\nTwo workers run on every host. Restart them with `systemctl restart runner@1 runner@2`.\n",
}

TURNS = [
    {
        "user": "Before we add retries I need to know how the worker behaves today. What happens to a job whose handler raises? "
        "And can a job run twice? Just read, don't change anything.",
        "model": [
            bash("git ls-files", "What is there"),
            read("runner/worker.py"),
            read("runner/store.py"),
            read("runner/handlers.py"),
            read("docs/operations.md"),
            bash("grep -rn 'recover(' runner", "Who calls recover"),
            "Yes to both questions, unfortunately:\n\n"
            "1. A handler that raises ends the worker: `run_forever` in runner/worker.py has no `except`, so the process dies and the job "
            "stays `running`.\n"
            "2. A job can run twice. `claim` in runner/store.py selects and updates in two statements without a transaction, so the two "
            "workers of docs/operations.md can both read the same waiting row before either marks it.\n"
            "3. `recover` is only called at the start of a worker, so a job that died with its worker waits until somebody restarts it, "
            "and then at least 600 seconds.",
        ],
    },
    {
        "user": "What about slow mail? An SMTP server that hangs must not look like a dead worker. Also which Python may I assume, "
        "can I use `update ... returning`?",
        "model": [
            read("runner/mail.py"),
            read("pyproject.toml"),
            bash("python3 --version", "Python here"),
            bash("python3 -c 'import sqlite3; print(\"sqlite\", \".\".join(sqlite3.sqlite_version.split(\".\")[:2]))'", "SQLite here"),
            bash("grep -n 'timeout' runner/*.py", "Timeouts"),
            "A hanging SMTP server blocks the worker for up to 300 seconds: `TIMEOUT` in runner/mail.py is None and `send` falls back to 300. "
            "That is half of the 600 seconds after which `recover` takes a job for dead, so two slow mails in one job would already be run again.\n\n"
            "pyproject.toml asks for Python >=3.9. `update … returning` needs SQLite 3.35, and Python 3.9 may be built against an older one, "
            "so it depends on the hosts, which I cannot see from here.",
        ],
    },
    {
        "user": "OK. We go with a lease column on jobs rather than a lock file per worker, and retries come after that. I'll open a ticket, nothing to write today.",
        "model": [
            "Understood, nothing was changed. For the ticket: the lease has to be longer than the 300 seconds that `send` may block.\n\n"
            "Next steps:\n- add a `lease_until` column to jobs and claim in one `update`\n- catch exceptions in `run_forever` before retries are added",
        ],
    },
]
