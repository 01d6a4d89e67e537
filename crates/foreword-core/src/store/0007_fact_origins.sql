-- Whose words each fact is: a JSON list beside `facts`, with user, agent, read or import for each. Where the
-- list is shorter, as in rows from before it, a fact has the observation's own origin.

alter table observations add column fact_origins text not null default '[]';
