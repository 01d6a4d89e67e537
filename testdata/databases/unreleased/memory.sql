PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE projects (
    id integer primary key,
    name text not null,
    created_at integer not null
) strict;
INSERT INTO projects VALUES(1,'pay',1794830088384);
CREATE TABLE project_keys (
    key text primary key,
    project_id integer not null references projects (id) on delete cascade
) strict, without rowid;
INSERT INTO project_keys VALUES('example.com/shop/pay',1);
CREATE TABLE items (
    id integer primary key autoincrement,
    uuid text not null unique,
    kind text not null check (kind in ('observation', 'summary', 'prompt', 'note'))
) strict;
INSERT INTO items VALUES(1,'01a1e435-b85b-7fb4-8e06-49402bc5ded5','prompt');
INSERT INTO items VALUES(2,'01a1e435-b883-7ad9-8607-e6d33df23804','observation');
INSERT INTO items VALUES(3,'01a1e435-b88a-7aa1-8ccc-464676d9d16c','summary');
INSERT INTO items VALUES(4,'01a1e435-b8e2-7cb8-93e6-b9fb959a54c9','prompt');
INSERT INTO items VALUES(5,'01a1e435-b8ef-7200-8b17-fe3c0dd4c9dc','observation');
INSERT INTO items VALUES(6,'01a1e435-b8f4-7f12-92d2-6c2a2369a160','summary');
CREATE TABLE sessions (
    id integer primary key,
    host text not null,
    host_session_id text not null,
    project_id integer references projects (id) on delete cascade,
    state text not null check (state in ('active', 'completed', 'interrupted', 'failed')),
    title text,
    branch text,
    root text,
    transcript_path text,
    started_at integer not null,
    last_event_at integer not null, subtitle text,
    unique (host, host_session_id)
) strict;
INSERT INTO sessions VALUES(1,'claude-code','first',1,'completed','Fix the expiry test of tokens','main','/srv/foreword/pay','/transcripts/first.jsonl',1794830088271,1794830088339,NULL);
INSERT INTO sessions VALUES(2,'claude-code','second',1,'active','Raise the limit','main','/srv/foreword/pay','/transcripts/second.jsonl',1794830088418,1794830088436,'It is seven now.');
CREATE TABLE prompts (
    id integer primary key references items (id),
    session_id integer not null references sessions (id) on delete cascade,
    number integer not null,
    host_prompt_id text,
    text text not null,
    reply text,
    at integer not null,
    unique (session_id, host_prompt_id)
) strict;
INSERT INTO prompts VALUES(1,1,1,'first-prompt','Fix the expiry test of tokens',replace('Fixed.\n\nNext steps:\n- cover refunds','\n',char(10)),1794830088283);
INSERT INTO prompts VALUES(4,2,1,'second-prompt','Raise the kumquat limit','The limit is seven now.',1794830088418);
CREATE TABLE observations (
    id integer primary key references items (id),
    session_id integer not null references sessions (id) on delete cascade,
    project_id integer references projects (id) on delete cascade,
    prompt_id integer references prompts (id) on delete set null,
    seed text not null,
    type text not null check (type in ('decision', 'bugfix', 'feature', 'refactor', 'discovery')),
    title text not null,
    subtitle text not null,
    facts text not null check (json_valid(facts)),
    narrative text not null,
    concepts text not null check (json_valid(concepts)),
    origin text not null check (origin in ('user', 'agent', 'read', 'import')),
    agent_id text,
    branch text,
    "commit" text,
    provider text not null,
    model text,
    prompt_version text,
    events text not null check (json_valid(events)),
    at integer not null, superseded_by integer references observations (id) on delete set null,
    unique (session_id, seed)
) strict;
INSERT INTO observations VALUES(2,1,1,1,'trouble:01a1e435-b875-74ed-b85e-68fb5035ed69','bugfix','Fixed “assertion failed: now <= expires” in src/token.rs','`cargo test` failed and passes now','["`cargo test` failed with exit code 101: assertion failed: now <= expires","`cargo test` passes after one failing run","src/token.rs: `now < expires` became `now <= expires`"]','Asked: “Fix the expiry test of tokens”. `cargo test` failed with “assertion failed: now <= expires”. Changed src/token.rs. After that `cargo test` passed. The agent''s closing words: “Fixed.”','["token","rust","testing","authentication"]','agent',NULL,'main',NULL,'offline',NULL,NULL,'["01a1e435-b875-74ed-b85e-68fb5035ed69","01a1e435-b87d-778f-b22b-b6057e251412","01a1e435-b883-7615-b56a-ea23374175a8"]',1794830088323,NULL);
INSERT INTO observations VALUES(5,2,1,4,'01a1e435-b8e2-7053-a1aa-c662772bb0fd/0','decision','Kumquat limit raised to seven','Six was too few','["MAX_KUMQUATS is 7"]','Orders of seven were refused, so the limit went up.','["limits"]','agent',NULL,'main',NULL,'openai','test-model','1','["01a1e435-b8ef-76af-ba1c-dc860f1a4d7b"]',1794830088431,NULL);
CREATE TABLE observation_files (
    observation_id integer not null references observations (id) on delete cascade,
    path text not null,
    role text not null check (role in ('read', 'modified')),
    size integer,
    mtime integer,
    hash text,
    primary key (observation_id, path, role)
) strict, without rowid;
INSERT INTO observation_files VALUES(2,'src/token.rs','modified',NULL,NULL,NULL);
INSERT INTO observation_files VALUES(5,'src/limit.rs','modified',NULL,NULL,NULL);
CREATE TABLE observation_concepts (
    observation_id integer not null references observations (id) on delete cascade,
    concept text not null,
    primary key (observation_id, concept)
) strict, without rowid;
INSERT INTO observation_concepts VALUES(2,'authentication');
INSERT INTO observation_concepts VALUES(5,'limits');
INSERT INTO observation_concepts VALUES(2,'rust');
INSERT INTO observation_concepts VALUES(2,'testing');
INSERT INTO observation_concepts VALUES(2,'token');
CREATE TABLE summaries (
    id integer primary key references items (id),
    session_id integer not null references sessions (id) on delete cascade,
    project_id integer references projects (id) on delete cascade,
    prompt_id integer not null unique references prompts (id) on delete cascade,
    request text not null,
    investigated text not null,
    learned text not null,
    completed text not null,
    next_steps text not null,
    files_read text not null check (json_valid(files_read)),
    files_edited text not null check (json_valid(files_edited)),
    notes text not null,
    provider text not null,
    model text,
    prompt_version text,
    at integer not null
) strict;
INSERT INTO summaries VALUES(3,1,1,1,'Fix the expiry test of tokens','','`cargo test` failed at first: assertion failed: now <= expires.','`cargo test` passes again.','cover refunds','[]','["src/token.rs"]','The agent''s closing words: “Fixed.”','offline',NULL,NULL,1794830088330);
INSERT INTO summaries VALUES(6,2,1,4,'Raise the limit','src/limit.rs','The limit is one constant.','It is seven now.','Tell the shops.','[]','[]','','openai','test-model','1',1794830088436);
CREATE TABLE processed_events (
    event_id text primary key,
    key text not null unique,
    outcome text not null check (outcome in ('stored', 'nothing')),
    at integer not null
, provider text) strict, without rowid;
INSERT INTO processed_events VALUES('01a1e435-b84f-7115-8f0e-71e08469d43a','session_start:first:first-prompt:678106dbb654a6978b6acbc7830b726e:179483008','stored',1794830088384,'offline');
INSERT INTO processed_events VALUES('01a1e435-b85b-7597-a015-bb105ac57fc1','prompt:first:first-prompt:e6eb7ea520d066388ffe37dbc8126613','stored',1794830088384,'offline');
INSERT INTO processed_events VALUES('01a1e435-b875-74ed-b85e-68fb5035ed69','tool:first:first-1','stored',1794830088384,'offline');
INSERT INTO processed_events VALUES('01a1e435-b87d-778f-b22b-b6057e251412','tool:first:first-2','stored',1794830088384,'offline');
INSERT INTO processed_events VALUES('01a1e435-b883-7615-b56a-ea23374175a8','tool:first:first-3','stored',1794830088384,'offline');
INSERT INTO processed_events VALUES('01a1e435-b88a-7775-ae77-bf74eb1fcad1','stop:first:first-prompt:0439b3fad3efa0514fbc737a0db2ee8c','stored',1794830088384,'offline');
INSERT INTO processed_events VALUES('01a1e435-b893-74ad-95d7-d5af31798f4c','session_end:first:first-prompt:a8a5d4d44e45b32a9d4f0e9c3b50484e:179483008','stored',1794830088384,'offline');
INSERT INTO processed_events VALUES('01a1e435-b8e2-7053-a1aa-c662772bb0fd','prompt:second:second-prompt:97b4ac83dcb5b889071c2d3e60413f81','stored',1794830088685,'openai');
INSERT INTO processed_events VALUES('01a1e435-b8ef-76af-ba1c-dc860f1a4d7b','tool:second:second-1','stored',1794830088685,'openai');
INSERT INTO processed_events VALUES('01a1e435-b8f4-7223-8254-9cc1bbeaef1a','stop:second:second-prompt:7a44b505e2e9f4006452ad3a8fbd3598','stored',1794830088685,'openai');
CREATE TABLE events (
    row integer primary key,
    id text not null,
    session_id integer not null references sessions (id) on delete cascade,
    turn text,
    key text not null,
    kind text not null,
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
    payload text not null,
    at integer not null
) strict;
INSERT INTO events VALUES(1,'01a1e435-b84f-7115-8f0e-71e08469d43a',1,'first-prompt','session_start:first:first-prompt:678106dbb654a6978b6acbc7830b726e:179483008','session_start','claude-code','first','first-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[]','{"source":"startup"}',1794830088271);
INSERT INTO events VALUES(2,'01a1e435-b85b-7597-a015-bb105ac57fc1',1,'first-prompt','prompt:first:first-prompt:e6eb7ea520d066388ffe37dbc8126613','prompt','claude-code','first','first-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[]','{"prompt":"Fix the expiry test of tokens"}',1794830088283);
INSERT INTO events VALUES(3,'01a1e435-b875-74ed-b85e-68fb5035ed69',1,'first-prompt','tool:first:first-1','tool_failure','claude-code','first','first-prompt',NULL,'Bash','first-1','/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[]','{"input":{"command":"cargo test"},"error":"Exit code 101\nthread ''expiry'' panicked at src/token.rs:9:5:\nassertion failed: now <= expires"}',1794830088308);
INSERT INTO events VALUES(4,'01a1e435-b87d-778f-b22b-b6057e251412',1,'first-prompt','tool:first:first-2','tool_use','claude-code','first','first-prompt',NULL,'Edit','first-2','/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[{"path":"/srv/foreword/pay/src/token.rs","role":"modified","size":null,"mtime":null,"hash":null}]','{"input":{"file_path":"/srv/foreword/pay/src/token.rs","new_string":"now <= expires","old_string":"now < expires"},"response":{"filePath":"/srv/foreword/pay/src/token.rs","structuredPatch":[{"lines":["-now < expires","+now <= expires"]}]}}',1794830088317);
INSERT INTO events VALUES(5,'01a1e435-b883-7615-b56a-ea23374175a8',1,'first-prompt','tool:first:first-3','tool_use','claude-code','first','first-prompt',NULL,'Bash','first-3','/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[]','{"input":{"command":"cargo test"},"response":{"interrupted":false,"stderr":"","stdout":"test result: ok"}}',1794830088323);
INSERT INTO events VALUES(6,'01a1e435-b88a-7775-ae77-bf74eb1fcad1',1,'first-prompt','stop:first:first-prompt:0439b3fad3efa0514fbc737a0db2ee8c','stop','claude-code','first','first-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[]','{"reply":"Fixed.\n\nNext steps:\n- cover refunds"}',1794830088330);
INSERT INTO events VALUES(7,'01a1e435-b893-74ad-95d7-d5af31798f4c',1,NULL,'session_end:first:first-prompt:a8a5d4d44e45b32a9d4f0e9c3b50484e:179483008','session_end','claude-code','first','first-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[]','{"reason":"other"}',1794830088339);
INSERT INTO events VALUES(8,'01a1e435-b8e2-7053-a1aa-c662772bb0fd',2,'second-prompt','prompt:second:second-prompt:97b4ac83dcb5b889071c2d3e60413f81','prompt','claude-code','second','second-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/second.jsonl','main',NULL,'[]','{"prompt":"Raise the kumquat limit"}',1794830088418);
INSERT INTO events VALUES(9,'01a1e435-b8ef-76af-ba1c-dc860f1a4d7b',2,'second-prompt','tool:second:second-1','tool_use','claude-code','second','second-prompt',NULL,'Edit','second-1','/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/second.jsonl','main',NULL,'[{"path":"/srv/foreword/pay/src/limit.rs","role":"modified","size":null,"mtime":null,"hash":null}]','{"input":{"file_path":"/srv/foreword/pay/src/limit.rs","new_string":"MAX_KUMQUATS: u32 = 7","old_string":"MAX_KUMQUATS: u32 = 6"},"response":{"filePath":"/srv/foreword/pay/src/limit.rs","structuredPatch":[{"lines":["-MAX_KUMQUATS: u32 = 6","+MAX_KUMQUATS: u32 = 7"]}]}}',1794830088431);
INSERT INTO events VALUES(10,'01a1e435-b8f4-7223-8254-9cc1bbeaef1a',2,'second-prompt','stop:second:second-prompt:7a44b505e2e9f4006452ad3a8fbd3598','stop','claude-code','second','second-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/second.jsonl','main',NULL,'[]','{"reply":"The limit is seven now."}',1794830088436);
CREATE TABLE ledger (
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
INSERT INTO ledger VALUES(1,1794830088693,'openai','test-model','second',3,61,1,1158,157,0,0,NULL,'answered',NULL,NULL,NULL);
PRAGMA writable_schema=ON;
INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES('table','texts','texts',0,'CREATE VIRTUAL TABLE texts using fts5 (
    title,
    body,
    tags,
    parts,
    content = '''',
    contentless_delete = 1,
    tokenize = ''porter unicode61''
)');
CREATE TABLE IF NOT EXISTS 'texts_data'(id INTEGER PRIMARY KEY, block BLOB);
INSERT INTO texts_data VALUES(1,X'061781080800');
INSERT INTO texts_data VALUES(10,X'00000001ff00000102060e0006060101010500000301010106060101010201010707000001030101080801010104010109090000010501010a0a0000010000');
INSERT INTO texts_data VALUES(137438953473,X'0000003308306b756d71756174040601010401056c696d69740406010105010472616973040601010201037468650406010103040e0c0b');
INSERT INTO texts_data VALUES(274877906945,X'0000005403306973040601010801076b756d71756174040601010401056c696d697404080101050401036e6f77040601010a01047261697304060101020105736576656e0406010109010374686504080101030504090e0d0a0b0c');
INSERT INTO texts_data VALUES(412316860417,X'000000cb02303705060101090103666577050601010501026973050601010801076b756d7175617405080201010701056c696d6974050e0301011101020201036d6178050601010601026f66050601010b020472646572050601010a010472616973050204020465667573050601010e0105736576656e05080601010c02026978050601010202016f050601010f0103746865050601011002016f05020503016f05060101040102757005060101130102776105060101030203656e74050601011203027265050601010d04080a090f100a090b090b0d09080a060809090a');
INSERT INTO texts_data VALUES(549755813889,X'000000cb02303705060101090103666577050601010501026973050601010801076b756d7175617405080201010701056c696d6974050e0301011101020201036d6178050601010601026f66050601010b020472646572050601010a010472616973050204020465667573050601010e0105736576656e05080601010c02026978050601010202016f050601010f0103746865050601011002016f05020503016f05060101040102757005060101130102776105060101030203656e74050601011203027265050601010d04080a090f100a090b090b0d09080a060809090a');
INSERT INTO texts_data VALUES(687194767361,X'0000008c0930636f6e7374616e74060601010901026973060801010706020174060601010a01056c696d6974060a040101030501036e6f77060601010d01026f6e060601010801047261697306020202017306060101040105736576656e060601010c0203686f700606010110020272630606010102010474656c6c060601010e02026865060a030101050c040f0a080e0a0909080c0a090b');
INSERT INTO texts_data VALUES(824633720833,X'000002480430313031020601010e0105616674657202080101162102046761696e030601010e0303656e74020601013b010601011202026e6402060101050202736b0206010122030473657274020a0301010f20010601010702017403060101050206757468656e7402060102050105626563616d020601011f0105636172676f020e010102080d181001080101020b020468616e67020601013102046c6f7365020601013d010601011402036f6465020601010d0303766572010601010b020601010f010465786974020601010c0303706972020e060101120e0511010601010a0601690106010104010601012501020401046661696c02120401010408080a15050108010104060204697273740306010106030178010801010208010a020101231e0108020101160102696e02020701046e657874010601010902026f770210050101070c0e0511010601010901026f660106010106010601012701020602016e0206010117010470617373020a0101061126010601010d0106726566756e64010601010c0206010110020173020a0a01011c1a01060102040202756e0206010119030273740206010203010173020601013c010601011302027263020a0801011a1a01060102020203746570010601010a01047465737401060101050116010103080d140610010204010a050101030b02036861740206010136030165010601010301080101241801080301011102046f6b656e010601010701120901011b0f0d010202010807010203010477697468020801010b2302036f7264020601013e0106010115040a0d0b0f090912080d0c160b100a0f0b1310170b16070b13110812120f09090d100a1f0a141c0c');
INSERT INTO texts_data VALUES(9007336693694464,X'04000000000000010000000000000000000000000000000000000004000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO texts_data VALUES(9007611571601408,X'04000000000000010000000000000000000000000000000000000000000000050000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
CREATE TABLE IF NOT EXISTS 'texts_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
INSERT INTO texts_idx VALUES(1,X'',2);
INSERT INTO texts_idx VALUES(2,X'',2);
INSERT INTO texts_idx VALUES(3,X'',2);
INSERT INTO texts_idx VALUES(4,X'',2);
INSERT INTO texts_idx VALUES(5,X'',2);
INSERT INTO texts_idx VALUES(6,X'',2);
CREATE TABLE IF NOT EXISTS 'texts_docsize'(id INTEGER PRIMARY KEY, sz BLOB, origin INTEGER);
INSERT INTO texts_docsize VALUES(1,X'000b0000',2);
INSERT INTO texts_docsize VALUES(2,X'093e0400',4);
INSERT INTO texts_docsize VALUES(3,X'06150300',5);
INSERT INTO texts_docsize VALUES(4,X'00090000',7);
INSERT INTO texts_docsize VALUES(5,X'05120100',9);
INSERT INTO texts_docsize VALUES(6,X'030f0000',10);
CREATE TABLE IF NOT EXISTS 'texts_config'(k PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO texts_config VALUES('usermerge',2);
INSERT INTO texts_config VALUES('version',4);
CREATE TABLE forgotten (
    session_id integer not null references sessions (id) on delete cascade,
    seed text not null,
    -- The ids of the events that it was derived from.
    events text not null check (json_valid(events)),
    at integer not null,
    primary key (session_id, seed)
) strict, without rowid;
CREATE TABLE repeats (
    session_id integer not null references sessions (id) on delete cascade,
    prompt_id integer references prompts (id) on delete set null,
    seed text not null,
    observation_id integer not null references observations (id) on delete cascade,
    provider text not null,
    events text not null check (json_valid(events)),
    at integer not null,
    primary key (session_id, seed)
) strict, without rowid;
CREATE TABLE receipts (
    id integer primary key,
    session_id integer not null references sessions (id) on delete cascade,
    item_id integer not null references items (id) on delete cascade,
    shown text not null check (shown in ('index', 'prompt', 'file', 'opened')),
    because text not null,
    at integer not null
) strict;
CREATE TABLE notes (
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
CREATE TABLE vectors (
    -- Never given twice: whoever holds all vectors sees by the last one whether any changed.
    made integer primary key autoincrement,
    item_id integer not null unique references items (id) on delete cascade,
    -- Which model made them.
    model text not null,
    records blob not null
) strict;
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('items',6);
CREATE INDEX project_keys_by_project on project_keys (project_id);
CREATE INDEX sessions_by_project on sessions (project_id, last_event_at);
CREATE INDEX observations_by_project on observations (project_id, at);
CREATE INDEX observations_by_type on observations (type, at);
CREATE INDEX observations_by_prompt on observations (prompt_id);
CREATE INDEX observation_files_by_path on observation_files (path);
CREATE INDEX observation_concepts_by_concept on observation_concepts (concept);
CREATE INDEX summaries_by_session on summaries (session_id, at);
CREATE INDEX events_by_turn on events (session_id, turn, at);
CREATE INDEX events_by_prompt on events (session_id, prompt_id);
CREATE INDEX events_by_age on events (at);
CREATE INDEX ledger_by_time on ledger (at);
CREATE INDEX ledger_by_session on ledger (host_session_id);
CREATE INDEX ledger_by_provider on ledger (provider, state);
CREATE TRIGGER observations_text_insert after insert on observations begin
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from told where id = new.id;
end;
CREATE TRIGGER observations_text_update after update on observations begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from told where id = new.id;
end;
CREATE TRIGGER observations_text_delete after delete on observations begin
    delete from texts where rowid = old.id;
end;
CREATE TRIGGER summaries_text_insert after insert on summaries begin
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from told where id = new.id;
end;
CREATE TRIGGER summaries_text_update after update on summaries begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from told where id = new.id;
end;
CREATE TRIGGER summaries_text_delete after delete on summaries begin
    delete from texts where rowid = old.id;
end;
CREATE TRIGGER prompts_text_insert after insert on prompts begin
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from told where id = new.id;
end;
CREATE TRIGGER prompts_text_update after update of text, reply on prompts begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from told where id = new.id;
end;
CREATE TRIGGER prompts_text_delete after delete on prompts begin
    delete from texts where rowid = old.id;
end;
CREATE INDEX observations_by_successor on observations (superseded_by) where superseded_by is not null;
CREATE INDEX repeats_by_observation on repeats (observation_id);
CREATE INDEX observation_files_by_name
on observation_files (replace(path, rtrim(path, replace(path, '/', '')), ''));
CREATE INDEX receipts_by_session on receipts (session_id, item_id);
CREATE INDEX receipts_by_item on receipts (item_id);
CREATE INDEX vectors_by_model on vectors (model, item_id);
CREATE VIEW told as
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
CREATE TRIGGER notes_text_insert after insert on notes begin
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from told where id = new.id;
end;
CREATE TRIGGER notes_text_update after update of title, text on notes begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags, parts)
    select id, title, body, tags, parts(title || ' ' || body || ' ' || tags) from told where id = new.id;
end;
CREATE TRIGGER notes_text_delete after delete on notes begin
    delete from texts where rowid = old.id;
end;
CREATE TRIGGER observations_vectors_update after update on observations
when old.title is not new.title
   or old.subtitle is not new.subtitle
   or old.facts is not new.facts
   or old.narrative is not new.narrative
begin
    delete from vectors where item_id = old.id;
end;
CREATE TRIGGER observations_vectors_delete after delete on observations begin
    delete from vectors where item_id = old.id;
end;
CREATE TRIGGER summaries_vectors_update after update on summaries
when old.request is not new.request
   or old.learned is not new.learned
   or old.completed is not new.completed
begin
    delete from vectors where item_id = old.id;
end;
CREATE TRIGGER summaries_vectors_delete after delete on summaries begin
    delete from vectors where item_id = old.id;
end;
CREATE TRIGGER prompts_vectors_update after update on prompts
when old.text is not new.text
   or old.reply is not new.reply
begin
    delete from vectors where item_id = old.id;
end;
CREATE TRIGGER prompts_vectors_delete after delete on prompts begin
    delete from vectors where item_id = old.id;
end;
CREATE TRIGGER notes_vectors_update after update on notes
when old.title is not new.title
   or old.text is not new.text
begin
    delete from vectors where item_id = old.id;
end;
CREATE TRIGGER notes_vectors_delete after delete on notes begin
    delete from vectors where item_id = old.id;
end;
PRAGMA writable_schema=OFF;
COMMIT;
pragma user_version = 6;
