PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE events (
    id text primary key,
    key text not null unique,
    kind text not null,
    at integer not null,
    state text not null default 'queued' check (state in ('queued', 'claimed', 'skipped')),
    attempts integer not null default 0,
    crashes integer not null default 0,
    due_at integer not null default 0,
    lease_until integer,
    last_error text,
    host text not null,
    host_session_id text not null,
    prompt_id text,
    agent_id text,
    tool_name text,
    tool_use_id text,
    cwd text,
    project_dir text,
    project text,
    root text,
    transcript_path text,
    branch text,
    "commit" text,
    files text not null,
    payload text not null
) strict, without rowid;
INSERT INTO events VALUES('01a1e435-ba0c-77a6-8870-37217d10a0e3','prompt:third:third-prompt:9103db1d4b75e3b5b86686ffd5a2cc13','prompt',1794830088716,'queued',0,0,0,NULL,NULL,'claude-code','third','third-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/third.jsonl','main',NULL,'[]','{"prompt":"Why is the refund queue slow?"}');
INSERT INTO events VALUES('01a1e435-ba29-726d-95a2-d6a9380790d4','tool:third:third-1','tool_use',1794830088745,'queued',0,0,0,NULL,NULL,'claude-code','third','third-prompt',NULL,'Bash','third-1','/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/third.jsonl','main',NULL,'[]','{"input":{"command":"grep -c REFUND journal"},"response":{"interrupted":false,"stderr":"","stdout":"tangerine 4711"}}');
CREATE INDEX events_by_session on events (host_session_id, state, at);
COMMIT;
pragma user_version = 1;
