-- Notes and masters of projects, so that a search finds them, and vectors, so that it finds
-- what was said in other words.

-- A mirror: the memory is in the files. A note is of a session, a master of none.
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

-- What an item says, as numbers that are near each other where the meaning is. One row an
-- item, all its records in one piece; what changes is made anew by the worker.
create table vectors (
    -- Never given twice: whoever holds all vectors sees by the last one whether any changed.
    made integer primary key autoincrement,
    item_id integer not null unique references items (id) on delete cascade,
    -- Which model made them.
    model text not null,
    records blob not null
) strict;

create index vectors_by_model on vectors (model, item_id);

drop view told;

create view told as
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

create trigger notes_text_insert after insert on notes begin
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from told where id = new.id;
end;

create trigger notes_text_update after update of title, text on notes begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from told where id = new.id;
end;

create trigger notes_text_delete after delete on notes begin
    delete from texts where rowid = old.id;
end;

-- A turn that is derived again mostly says the same again.
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
