-- The queue between the hooks and the worker: one table, so that a hook has
-- little schema to parse and the worker only claims and deletes. What the worker
-- looks for stands before the payload: whatever comes after a large column is found
-- by reading all of it.
create table events (
    id text primary key,
    key text not null unique,
    kind text not null,
    at integer not null,
    state text not null default 'queued' check (state in ('queued', 'claimed', 'skipped')),
    attempts integer not null default 0,
    crashes integer not null default 0,
    due_at integer not null default 0,
    lease_until integer,
    last_error text,
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
    payload text not null
) strict, without rowid;

create index events_by_session on events (host_session_id, state, at);
