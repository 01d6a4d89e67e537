-- What became of an insight later: told again, overtaken by a newer one, shown to an agent.

-- The newer decision on the same matter.
alter table observations add column superseded_by integer references observations (id) on delete set null;

create index observations_by_successor on observations (superseded_by) where superseded_by is not null;

-- The same insight told again, by session and seed as if it were a row of its own. How
-- often an insight was told is one more than it has rows here.
create table repeats (
    session_id integer not null references sessions (id) on delete cascade,
    prompt_id integer references prompts (id) on delete set null,
    seed text not null,
    observation_id integer not null references observations (id) on delete cascade,
    provider text not null,
    events text not null check (json_valid(events)),
    at integer not null,
    primary key (session_id, seed)
) strict, without rowid;

create index repeats_by_observation on repeats (observation_id);

-- A file by its name, the part of the path behind the last slash.
create index observation_files_by_name
on observation_files (replace(path, rtrim(path, replace(path, '/', '')), ''));

-- What was put before an agent, where and because of what; or what it opened by itself.
create table receipts (
    id integer primary key,
    session_id integer not null references sessions (id) on delete cascade,
    item_id integer not null references items (id) on delete cascade,
    shown text not null check (shown in ('index', 'prompt', 'file', 'opened')),
    because text not null,
    at integer not null
) strict;

create index receipts_by_session on receipts (session_id, item_id);
create index receipts_by_item on receipts (item_id);
