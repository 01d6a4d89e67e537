-- Which turn a call was about, and which model was asked: a model's answer may name itself
-- differently, and a call without an answer names none.

-- The host's id of the turn's prompt; empty for the events before the first prompt.
alter table ledger add column turn text;
-- The model's name in the settings.
alter table ledger add column asked_model text;
