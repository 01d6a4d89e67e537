-- What a session came to as a whole, observations that no longer hold, and prompts of turns in
-- which nothing happened.

-- Lists of sentences: what is unfinished, and which attempts were given up and why.
alter table sessions add column open text not null default '[]' check (json_valid(open));
alter table sessions add column given_up text not null default '[]' check (json_valid(given_up));
-- The provider that wrote title, subtitle and these lists; null while the title is the first prompt.
alter table sessions add column digest_by text;
-- The newest observation when a model was last asked about the whole session, or would have been
-- if its budget were not used up; null while it was not.
alter table sessions add column closed_at_item integer;

-- Why the observation no longer holds; null while it does. `superseded_by` names what replaced it.
alter table observations add column retracted text;

-- 0 if nothing came of the prompt's turn: then the prompt is neither searched nor embedded.
alter table prompts add column kept integer not null default 1 check (kept in (0, 1));

-- A turn can have thousands of steps; only the newest of them are read with a new event.
drop index events_by_turn;
create index events_by_turn on events (session_id, turn, kind in ('tool_use', 'tool_failure', 'words'), at);
-- Finds events that came before their prompt, and so are stored under another turn.
drop index events_by_prompt;
create index events_by_prompt on events (session_id, prompt_id, turn);
create index repeats_by_prompt on repeats (prompt_id);
create index prompts_by_time on prompts (session_id, at, host_prompt_id);

drop trigger prompts_text_insert;
drop trigger prompts_text_update;
drop view item_texts;

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
where kept
union all
select id, title, text, ''
from notes;

create trigger prompts_text_insert after insert on prompts begin
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from item_texts where id = new.id;
end;

create trigger prompts_text_update after update of text, reply, kept on prompts begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from item_texts where id = new.id;
end;

create trigger prompts_vectors_kept after update of kept on prompts
when new.kept = 0 begin
    delete from vectors where item_id = old.id;
end;
