-- Words: identifiers are found by their parts, and languages without spaces at all.
--
-- `parts(text)` is a function of the program: what FTS5 does not see by itself
-- (`camelCase`, CJK, `C++`). Only what writes needs it; reading goes without.
-- Facts and concepts are lists: their words are taken out of the JSON first.

drop trigger observations_text_insert;
drop trigger observations_text_update;
drop trigger observations_text_delete;
drop trigger summaries_text_insert;
drop trigger summaries_text_update;
drop trigger summaries_text_delete;
drop trigger prompts_text_insert;
drop trigger prompts_text_update;
drop trigger prompts_text_delete;
drop table texts;

create virtual table texts using fts5 (
    title,
    body,
    tags,
    parts,
    content = '',
    contentless_delete = 1,
    tokenize = 'porter unicode61'
);

-- What each item says, by column of `texts`.
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
from prompts;

create trigger observations_text_insert after insert on observations begin
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from told where id = new.id;
end;

create trigger observations_text_update after update on observations begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from told where id = new.id;
end;

create trigger observations_text_delete after delete on observations begin
    delete from texts where rowid = old.id;
end;

create trigger summaries_text_insert after insert on summaries begin
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from told where id = new.id;
end;

create trigger summaries_text_update after update on summaries begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from told where id = new.id;
end;

create trigger summaries_text_delete after delete on summaries begin
    delete from texts where rowid = old.id;
end;

create trigger prompts_text_insert after insert on prompts begin
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from told where id = new.id;
end;

create trigger prompts_text_update after update of text, reply on prompts begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from told where id = new.id;
end;

create trigger prompts_text_delete after delete on prompts begin
    delete from texts where rowid = old.id;
end;

insert into texts (rowid, title, body, tags, parts)
select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from told;
