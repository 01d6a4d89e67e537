-- What somebody had forgotten: the insight is gone, and this keeps it from being derived
-- again from events that are still kept. It names the insight and says nothing of it.

create table forgotten (
    session_id integer not null references sessions (id) on delete cascade,
    seed text not null,
    -- The ids of the events that it was derived from.
    events text not null check (json_valid(events)),
    at integer not null,
    primary key (session_id, seed)
) strict, without rowid;
