-- The memory: sessions, what was asked, what was learned, and the events that
-- all of it was derived from. Times are milliseconds since 1970, UTC.

create table projects (
    id integer primary key,
    name text not null,
    created_at integer not null
) strict;

-- What the resolver says: a remote spelled one way, or a canonical path. A
-- project that was moved or merged has several.
create table project_keys (
    key text primary key,
    project_id integer not null references projects (id) on delete cascade
) strict, without rowid;

create index project_keys_by_project on project_keys (project_id);

-- One sequence of short numbers over everything that people and agents refer
-- to, so that `#12` is never ambiguous. A number is never given twice.
create table items (
    id integer primary key autoincrement,
    uuid text not null unique,
    kind text not null check (kind in ('observation', 'summary', 'prompt', 'note'))
) strict;

create table sessions (
    id integer primary key,
    host text not null,
    host_session_id text not null,
    project_id integer references projects (id) on delete cascade,
    state text not null check (state in ('active', 'completed', 'interrupted', 'failed')),
    title text,
    -- The outcome, as the first summary states it.
    subtitle text,
    branch text,
    root text,
    transcript_path text,
    started_at integer not null,
    last_event_at integer not null,
    unique (host, host_session_id)
) strict;

create index sessions_by_project on sessions (project_id, last_event_at);

-- What the user typed, numbered within its session, with the agent's last reply.
create table prompts (
    id integer primary key references items (id),
    session_id integer not null references sessions (id) on delete cascade,
    number integer not null,
    host_prompt_id text,
    text text not null,
    reply text,
    at integer not null,
    unique (session_id, host_prompt_id)
) strict;

create table observations (
    id integer primary key references items (id),
    session_id integer not null references sessions (id) on delete cascade,
    project_id integer references projects (id) on delete cascade,
    prompt_id integer references prompts (id) on delete set null,
    seed text not null,
    type text not null check (type in ('decision', 'bugfix', 'feature', 'refactor', 'discovery')),
    title text not null,
    subtitle text not null,
    facts text not null check (json_valid(facts)),
    narrative text not null,
    concepts text not null check (json_valid(concepts)),
    origin text not null check (origin in ('user', 'agent', 'read', 'import')),
    agent_id text,
    branch text,
    "commit" text,
    provider text not null,
    model text,
    prompt_version text,
    events text not null check (json_valid(events)),
    at integer not null,
    -- The newer decision on the same matter.
    superseded_by integer references observations (id) on delete set null,
    unique (session_id, seed)
) strict;

create index observations_by_project on observations (project_id, at);
create index observations_by_type on observations (type, at);
-- Finds an observation that says the same again.
create index observations_by_title on observations (project_id, type, lower(title));
create index observations_by_prompt on observations (prompt_id);
create index observations_by_successor on observations (superseded_by) where superseded_by is not null;

-- An insight that a later turn derived once more, by session and seed as if it were a row of
-- its own. How often an insight was derived is one more than it has rows here.
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

-- An observation or summary that somebody had forgotten: this keeps it from being derived again
-- from events that are still kept. It names the insight and has nothing of its text.
create table forgotten (
    session_id integer not null references sessions (id) on delete cascade,
    seed text not null,
    -- The ids of the events that it was derived from.
    events text not null check (json_valid(events)),
    at integer not null,
    primary key (session_id, seed)
) strict, without rowid;

create table observation_files (
    observation_id integer not null references observations (id) on delete cascade,
    path text not null,
    role text not null check (role in ('read', 'modified')),
    size integer,
    mtime integer,
    hash text,
    primary key (observation_id, path, role)
) strict, without rowid;

create index observation_files_by_path on observation_files (path);
-- By the file's name, the part of the path behind the last slash.
create index observation_files_by_name
on observation_files (replace(path, rtrim(path, replace(path, '/', '')), ''));

create table observation_concepts (
    observation_id integer not null references observations (id) on delete cascade,
    concept text not null,
    primary key (observation_id, concept)
) strict, without rowid;

create index observation_concepts_by_concept on observation_concepts (concept);

-- One per prompt; the last stop of a turn wins.
create table summaries (
    id integer primary key references items (id),
    session_id integer not null references sessions (id) on delete cascade,
    project_id integer references projects (id) on delete cascade,
    prompt_id integer not null unique references prompts (id) on delete cascade,
    request text not null,
    investigated text not null,
    learned text not null,
    completed text not null,
    next_steps text not null,
    files_read text not null check (json_valid(files_read)),
    files_edited text not null check (json_valid(files_edited)),
    notes text not null,
    provider text not null,
    model text,
    prompt_version text,
    at integer not null
) strict;

create index summaries_by_session on summaries (session_id, at);

-- A mirror of the notes and masters in projects, so that a search finds them; the files are the
-- memory. A note belongs to a session, a master to none.
create table notes (
    id integer primary key references items (id),
    project_id integer not null references projects (id) on delete cascade,
    -- Below the working tree: `_memory/conversations/ID.md`, `_memory/master.md`.
    path text not null,
    session text,
    title text not null,
    context text not null,
    text text not null,
    size integer not null,
    mtime integer not null,
    at integer not null,
    unique (project_id, path)
) strict;

-- Each event that was taken in, by id and by key, in the same transaction as what
-- came of it: the other half of exactly-once, since the queue is another file.
create table processed_events (
    event_id text primary key,
    key text not null unique,
    outcome text not null check (outcome in ('stored', 'nothing')),
    -- Who took it in; null if only the event was left to tell of it.
    provider text,
    at integer not null
) strict, without rowid;

-- The redacted events themselves, for some days: a turn is derived from as a whole. Never
-- searched, never injected: raw output is not memory. The columns are for looking rows up;
-- `event` is all of it, the same JSON as in the queue and the spool. It stands last, since
-- SQLite finds a column behind a large one by reading all of it.
create table events (
    -- Rows of a table with a number share pages; those of one without would take pages of their own.
    row integer primary key,
    id text not null unique,
    session_id integer not null references sessions (id) on delete cascade,
    -- The host's id of the prompt that the event was put under; `prompt_id` is what the host said.
    turn text,
    prompt_id text,
    key text not null,
    kind text not null,
    at integer not null,
    event text not null
) strict;

create index events_by_turn on events (session_id, turn, at);
create index events_by_prompt on events (session_id, prompt_id);
create index events_by_age on events (at);

-- One row for each question to a model, written before it is asked and completed when it
-- is answered: a worker that dies in between leaves the row, so spending is never
-- hidden. Rows of `offline` record that it stood in for a model, and why.
create table ledger (
    id integer primary key,
    at integer not null,
    provider text not null,
    model text,
    host_session_id text not null,
    -- How many events the question was about, and tokens of what the host sent of them.
    events integer not null,
    raw_tokens integer not null,
    requests integer not null,
    input_tokens integer not null default 0,
    output_tokens integer not null default 0,
    cache_read_tokens integer not null default 0,
    cache_write_tokens integer not null default 0,
    -- Null if the price is not known.
    cost_usd real,
    state text not null check (state in ('open', 'answered', 'failed')),
    failure text,
    note text,
    -- Until when nobody is asked, after a failure that was nobody's fault here.
    retry_at integer
) strict;

create index ledger_by_time on ledger (at);
create index ledger_by_session on ledger (host_session_id);
create index ledger_by_provider on ledger (provider, state);

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

-- An item's text as vectors, for search by meaning: one row an item, the vectors of all its
-- chunks in one blob. The worker makes what is missing.
create table vectors (
    -- Never given twice: a reader that holds all vectors sees by the last one whether any changed.
    made integer primary key autoincrement,
    item_id integer not null unique references items (id) on delete cascade,
    -- The model that made them, and how items are cut into chunks.
    model text not null,
    chunks blob not null
) strict;

create index vectors_by_model on vectors (model, item_id);

-- Full text over everything that can be found. The triggers keep it in step, so
-- that no road can write a row and forget its text.
create virtual table texts using fts5 (
    title,
    body,
    tags,
    parts,
    content = '',
    contentless_delete = 1,
    tokenize = 'porter unicode61'
);

-- The text of each item, by column of `texts`. Facts and concepts are lists: their words are
-- taken out of the JSON first.
create view item_texts as
select id, title, subtitle || ' ' || (select coalesce(group_concat(value, ' '), '') from json_each(facts)) || ' ' || narrative as body,
       (select coalesce(group_concat(value, ' '), '') from json_each(concepts)) as tags
from observations
union all
select id, request, investigated || ' ' || learned || ' ' || completed || ' ' || next_steps || ' ' || notes,
       (select coalesce(group_concat(value, ' '), '') from json_each(files_read))
       || ' ' || (select coalesce(group_concat(value, ' '), '') from json_each(files_edited))
from summaries
union all
select id, '', text || ' ' || coalesce(reply, ''), ''
from prompts
union all
select id, title, text, ''
from notes;

-- `parts(text)` is a function of the program: the parts of words that FTS5 does not see by
-- itself (`camelCase`, CJK, `C++`). Only a writer needs it; a reader does without.
create trigger observations_text_insert after insert on observations begin
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from item_texts where id = new.id;
end;

create trigger observations_text_update after update on observations begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from item_texts where id = new.id;
end;

create trigger observations_text_delete after delete on observations begin
    delete from texts where rowid = old.id;
end;

create trigger summaries_text_insert after insert on summaries begin
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from item_texts where id = new.id;
end;

create trigger summaries_text_update after update on summaries begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from item_texts where id = new.id;
end;

create trigger summaries_text_delete after delete on summaries begin
    delete from texts where rowid = old.id;
end;

create trigger prompts_text_insert after insert on prompts begin
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from item_texts where id = new.id;
end;

create trigger prompts_text_update after update of text, reply on prompts begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from item_texts where id = new.id;
end;

create trigger prompts_text_delete after delete on prompts begin
    delete from texts where rowid = old.id;
end;

create trigger notes_text_insert after insert on notes begin
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from item_texts where id = new.id;
end;

create trigger notes_text_update after update of title, text on notes begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from item_texts where id = new.id;
end;

create trigger notes_text_delete after delete on notes begin
    delete from texts where rowid = old.id;
end;

-- Vectors go with the text that they were made of. A turn that is derived again mostly has the
-- same text again, which keeps its vectors.
create trigger observations_vectors_update after update on observations
when old.title is not new.title
   or old.subtitle is not new.subtitle
   or old.facts is not new.facts
   or old.narrative is not new.narrative
begin
    delete from vectors where item_id = old.id;
end;

create trigger observations_vectors_delete after delete on observations begin
    delete from vectors where item_id = old.id;
end;

create trigger summaries_vectors_update after update on summaries
when old.request is not new.request
   or old.learned is not new.learned
   or old.completed is not new.completed
begin
    delete from vectors where item_id = old.id;
end;

create trigger summaries_vectors_delete after delete on summaries begin
    delete from vectors where item_id = old.id;
end;

create trigger prompts_vectors_update after update on prompts
when old.text is not new.text
   or old.reply is not new.reply
begin
    delete from vectors where item_id = old.id;
end;

create trigger prompts_vectors_delete after delete on prompts begin
    delete from vectors where item_id = old.id;
end;

create trigger notes_vectors_update after update on notes
when old.title is not new.title
   or old.text is not new.text
begin
    delete from vectors where item_id = old.id;
end;

create trigger notes_vectors_delete after delete on notes begin
    delete from vectors where item_id = old.id;
end;
