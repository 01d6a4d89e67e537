-- What a person changed by hand: pinned, hidden, edited and limited observations, what they were
-- before, and verdicts on how two of them are related.

alter table observations add column pinned_at integer;
alter table observations add column hidden_at integer;
-- Since then the words are the user's: the worker does not write them anew.
alter table observations add column edited_at integer;
-- The last moment at which it holds; null if it has no time limit.
alter table observations add column until integer;
-- Where an imported observation comes from; null if it was made here.
alter table observations add column imported_from text;

create index observations_pinned on observations (project_id, pinned_at) where pinned_at is not null;
-- The newest over all projects: imported rows have new numbers and old times.
create index observations_by_time on observations (at, id);

-- One row for each item that a person's command changed. Rows of one command have the same time.
create table journal (
    id integer primary key,
    item_id integer not null references items (id) on delete cascade,
    action text not null check (action in ('remember', 'edit', 'pin', 'hide', 'relate', 'import')),
    -- The fields that changed, as they were; '{}' for an item that did not exist.
    before text not null check (json_valid(before)),
    -- Who did it: 'shell', 'agent' or 'viewer'.
    who text not null,
    at integer not null
) strict;

create index journal_by_item on journal (item_id, id);
create index journal_by_time on journal (at, id);

create trigger observations_journal_delete after delete on observations begin
    delete from journal where item_id = old.id;
end;

-- What a person said about two observations: the worker does not mark them differently.
create table judged (
    a integer not null references observations (id) on delete cascade,
    b integer not null references observations (id) on delete cascade,
    -- 'supersedes': `a` replaces `b`. 'unrelated': neither replaces the other.
    verdict text not null check (verdict in ('supersedes', 'unrelated')),
    at integer not null,
    primary key (a, b)
) strict, without rowid;

create index judged_by_b on judged (b);

-- Recognises a forgotten item in an export that is read in again.
alter table forgotten add column uuid text;
create index forgotten_by_uuid on forgotten (uuid) where uuid is not null;
create index forgotten_by_time on forgotten (at);

-- An observation whose row has no text that changed keeps its full text: pinning is not writing.
drop trigger observations_text_update;
create trigger observations_text_update
after update of title, subtitle, facts, narrative, concepts on observations begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from item_texts where id = new.id;
end;
