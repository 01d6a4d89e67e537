-- The queue between the hooks and the worker: one table, so that a hook has
-- little schema to parse and the worker only claims and deletes. The other columns are for claiming;
-- `event` is the whole event, the same JSON as in the spool. It is the last column, since SQLite
-- has to read through a large value to reach the columns after it.
create table events (
    id text primary key,
    key text not null unique,
    kind text not null,
    host_session_id text not null,
    at integer not null,
    state text not null default 'queued' check (state in ('queued', 'claimed', 'skipped')),
    attempts integer not null default 0,
    crashes integer not null default 0,
    due_at integer not null default 0,
    last_error text,
    event text not null
) strict, without rowid;

create index events_by_session on events (host_session_id, state, at);
