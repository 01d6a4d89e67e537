-- Models: what each call cost, who took in which event, and what a session came to.

-- One row for each question to a model, written before it is asked and completed when it
-- is answered: a worker that dies in between leaves the row, so spending is never
-- hidden. Rows of `offline` say that it stood in for a model, and why.
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

-- Who took an event in; null before there were models: offline.
alter table processed_events add column provider text;

-- What the first summary says the session came to.
alter table sessions add column subtitle text;
