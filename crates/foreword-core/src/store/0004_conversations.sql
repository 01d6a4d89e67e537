-- The memory agent's conversation about each session that is not over: what a model was asked and
-- what it answered. It is never needed: one that is lost is begun again.

create table conversations (
    host text not null,
    host_session_id text not null,
    provider text not null,
    -- The provider's own account of it. Its texts are redacted.
    state text not null check (json_valid(state)),
    used_at integer not null,
    primary key (host, host_session_id)
) strict, without rowid;
