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
    unique (session_id, seed)
) strict;

create index observations_by_project on observations (project_id, at);
create index observations_by_type on observations (type, at);
create index observations_by_prompt on observations (prompt_id);

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

-- Each event that was taken in, by id and by key, in the same transaction as what
-- came of it: the other half of exactly-once, since the queue is another file.
create table processed_events (
    event_id text primary key,
    key text not null unique,
    outcome text not null check (outcome in ('stored', 'nothing')),
    at integer not null
) strict, without rowid;

-- The redacted events themselves, for some days: a turn is derived from as a
-- whole. Never searched, never injected: raw output is not memory. Nothing here
-- guards against taking an event in twice; that is the task of processed_events
-- alone, and the crash tests count the rows to see it done.
create table events (
    row integer primary key,
    id text not null,
    session_id integer not null references sessions (id) on delete cascade,
    turn text,
    key text not null,
    kind text not null,
    host text not null,
    host_session_id text not null,
    prompt_id text,
    agent_id text,
    tool_name text,
    tool_use_id text,
    cwd text,
    project_dir text,
    project text,
    root text,
    transcript_path text,
    branch text,
    "commit" text,
    files text not null,
    payload text not null,
    at integer not null
) strict;

create index events_by_turn on events (session_id, turn, at);
create index events_by_prompt on events (session_id, prompt_id);
create index events_by_age on events (at);

-- Full text over everything that can be found. The triggers keep it in step, so
-- that no road can write a row and forget its text.
create virtual table texts using fts5 (
    title,
    body,
    tags,
    content = '',
    contentless_delete = 1,
    tokenize = 'porter unicode61'
);

create trigger observations_text_insert after insert on observations begin
    insert into texts (rowid, title, body, tags)
    values (new.id, new.title, new.subtitle || ' ' || new.facts || ' ' || new.narrative, new.concepts);
end;

create trigger observations_text_update after update on observations begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags)
    values (new.id, new.title, new.subtitle || ' ' || new.facts || ' ' || new.narrative, new.concepts);
end;

create trigger observations_text_delete after delete on observations begin
    delete from texts where rowid = old.id;
end;

create trigger summaries_text_insert after insert on summaries begin
    insert into texts (rowid, title, body, tags)
    values (
        new.id,
        new.request,
        new.investigated || ' ' || new.learned || ' ' || new.completed || ' ' || new.next_steps || ' ' || new.notes,
        new.files_read || ' ' || new.files_edited
    );
end;

create trigger summaries_text_update after update on summaries begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags)
    values (
        new.id,
        new.request,
        new.investigated || ' ' || new.learned || ' ' || new.completed || ' ' || new.next_steps || ' ' || new.notes,
        new.files_read || ' ' || new.files_edited
    );
end;

create trigger summaries_text_delete after delete on summaries begin
    delete from texts where rowid = old.id;
end;

create trigger prompts_text_insert after insert on prompts begin
    insert into texts (rowid, title, body, tags)
    values (new.id, new.text, coalesce(new.reply, ''), '');
end;

create trigger prompts_text_update after update of text, reply on prompts begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags)
    values (new.id, new.text, coalesce(new.reply, ''), '');
end;

create trigger prompts_text_delete after delete on prompts begin
    delete from texts where rowid = old.id;
end;
