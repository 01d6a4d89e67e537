PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE projects (
    id integer primary key,
    name text not null,
    created_at integer not null
) strict;
INSERT INTO projects VALUES(1,'pay',1794813449004);
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
INSERT INTO items VALUES(1,'01a1e337-d2ca-72b6-bc14-3f6d38b449f6','prompt');
INSERT INTO items VALUES(2,'01a1e337-d2ea-75bd-b43c-914ba83ef0d8','observation');
INSERT INTO items VALUES(3,'01a1e337-d2f6-790e-9b65-6ad47cef800f','summary');
INSERT INTO items VALUES(4,'01a1e337-d342-7f9e-a980-933ba3748a03','prompt');
INSERT INTO items VALUES(5,'01a1e337-d34a-711e-86b2-4da12851626b','observation');
INSERT INTO items VALUES(6,'01a1e337-d352-72ef-8f81-f592259e7bd3','summary');
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
    last_event_at integer not null,
    unique (host, host_session_id)
) strict;
INSERT INTO sessions VALUES(1,'claude-code','first',1,'completed','Fix the expiry test of tokens','main','/srv/foreword/pay','/transcripts/first.jsonl',1794813448902,1794813448962);
INSERT INTO sessions VALUES(2,'claude-code','second',1,'active','Raise the kumquat limit','main','/srv/foreword/pay','/transcripts/second.jsonl',1794813449026,1794813449042);
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
INSERT INTO prompts VALUES(1,1,1,'first-prompt','Fix the expiry test of tokens',replace('Fixed.\n\nNext steps:\n- cover refunds','\n',char(10)),1794813448906);
INSERT INTO prompts VALUES(4,2,1,'second-prompt','Raise the kumquat limit','The limit is seven now.',1794813449026);
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
    at integer not null,
    unique (session_id, seed)
) strict;
INSERT INTO observations VALUES(2,1,1,1,'trouble:01a1e337-d2d3-74f7-a4f6-05d487a1fc12','bugfix','Fixed “assertion failed: now <= expires” in src/token.rs','`cargo test` failed and passes now','["`cargo test` failed with exit code 101: assertion failed: now <= expires","`cargo test` passes after one failing run","src/token.rs: `now < expires` became `now <= expires`"]','Asked: “Fix the expiry test of tokens”. `cargo test` failed with “assertion failed: now <= expires”. Changed src/token.rs. After that `cargo test` passed. The agent''s closing words: “Fixed.”','["token","rust","testing","authentication"]','agent',NULL,'main',NULL,'offline',NULL,NULL,'["01a1e337-d2d3-74f7-a4f6-05d487a1fc12","01a1e337-d2e0-7508-bbe1-312f6246a0e7","01a1e337-d2ea-709b-9c28-d1b3a021ec07"]',1794813448938);
INSERT INTO observations VALUES(5,2,1,4,'edits:second-prompt','refactor','src/limit.rs: `MAX_KUMQUATS: u32 = 6` became `MAX_KUMQUATS: u32 = 7`','src/limit.rs (+1 −1)','[]','Asked: “Raise the kumquat limit”. Changed src/limit.rs. The agent''s closing words: “The limit is seven now.”','["limit","rust"]','agent',NULL,'main',NULL,'offline',NULL,NULL,'["01a1e337-d34a-77ee-bb26-3c741f03531d"]',1794813449034);
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
INSERT INTO observation_concepts VALUES(5,'limit');
INSERT INTO observation_concepts VALUES(2,'rust');
INSERT INTO observation_concepts VALUES(5,'rust');
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
INSERT INTO summaries VALUES(3,1,1,1,'Fix the expiry test of tokens','','`cargo test` failed at first: assertion failed: now <= expires.','`cargo test` passes again.','cover refunds','[]','["src/token.rs"]','The agent''s closing words: “Fixed.”','offline',NULL,NULL,1794813448950);
INSERT INTO summaries VALUES(6,2,1,4,'Raise the kumquat limit','','','Changed src/limit.rs.','','[]','["src/limit.rs"]','The agent''s closing words: “The limit is seven now.”','offline',NULL,NULL,1794813449042);
CREATE TABLE processed_events (
    event_id text primary key,
    key text not null unique,
    outcome text not null check (outcome in ('stored', 'nothing')),
    at integer not null
) strict, without rowid;
INSERT INTO processed_events VALUES('01a1e337-d2c6-746d-b129-0fc35c7c0e57','session_start:first:678106dbb654a6978b6acbc7830b726e:179481344','stored',1794813449004);
INSERT INTO processed_events VALUES('01a1e337-d2ca-756e-8a3f-3991b68744eb','prompt:first:first-prompt:e6eb7ea520d066388ffe37dbc8126613','stored',1794813449004);
INSERT INTO processed_events VALUES('01a1e337-d2d3-74f7-a4f6-05d487a1fc12','tool:first:first-1','stored',1794813449004);
INSERT INTO processed_events VALUES('01a1e337-d2e0-7508-bbe1-312f6246a0e7','tool:first:first-2','stored',1794813449004);
INSERT INTO processed_events VALUES('01a1e337-d2ea-709b-9c28-d1b3a021ec07','tool:first:first-3','stored',1794813449004);
INSERT INTO processed_events VALUES('01a1e337-d2f6-7654-aa4c-cd181993171b','stop:first:first-prompt:0439b3fad3efa0514fbc737a0db2ee8c','stored',1794813449004);
INSERT INTO processed_events VALUES('01a1e337-d302-72be-a038-61bddb192243','session_end:first:a8a5d4d44e45b32a9d4f0e9c3b50484e:179481344','stored',1794813449004);
INSERT INTO processed_events VALUES('01a1e337-d342-709d-a289-37b2bedf7240','prompt:second:second-prompt:97b4ac83dcb5b889071c2d3e60413f81','stored',1794813449052);
INSERT INTO processed_events VALUES('01a1e337-d34a-77ee-bb26-3c741f03531d','tool:second:second-1','stored',1794813449052);
INSERT INTO processed_events VALUES('01a1e337-d352-7741-a803-a28158258246','stop:second:second-prompt:7a44b505e2e9f4006452ad3a8fbd3598','stored',1794813449052);
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
INSERT INTO events VALUES(1,'01a1e337-d2c6-746d-b129-0fc35c7c0e57',1,'first-prompt','session_start:first:678106dbb654a6978b6acbc7830b726e:179481344','session_start','claude-code','first','first-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[]','{"source":"startup"}',1794813448902);
INSERT INTO events VALUES(2,'01a1e337-d2ca-756e-8a3f-3991b68744eb',1,'first-prompt','prompt:first:first-prompt:e6eb7ea520d066388ffe37dbc8126613','prompt','claude-code','first','first-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[]','{"prompt":"Fix the expiry test of tokens"}',1794813448906);
INSERT INTO events VALUES(3,'01a1e337-d2d3-74f7-a4f6-05d487a1fc12',1,'first-prompt','tool:first:first-1','tool_failure','claude-code','first','first-prompt',NULL,'Bash','first-1','/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[]','{"input":{"command":"cargo test"},"error":"Exit code 101\nthread ''expiry'' panicked at src/token.rs:9:5:\nassertion failed: now <= expires"}',1794813448915);
INSERT INTO events VALUES(4,'01a1e337-d2e0-7508-bbe1-312f6246a0e7',1,'first-prompt','tool:first:first-2','tool_use','claude-code','first','first-prompt',NULL,'Edit','first-2','/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[{"path":"/srv/foreword/pay/src/token.rs","role":"modified","size":null,"mtime":null,"hash":null}]','{"input":{"file_path":"/srv/foreword/pay/src/token.rs","new_string":"now <= expires","old_string":"now < expires"},"response":{"filePath":"/srv/foreword/pay/src/token.rs","structuredPatch":[{"lines":["-now < expires","+now <= expires"]}]}}',1794813448928);
INSERT INTO events VALUES(5,'01a1e337-d2ea-709b-9c28-d1b3a021ec07',1,'first-prompt','tool:first:first-3','tool_use','claude-code','first','first-prompt',NULL,'Bash','first-3','/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[]','{"input":{"command":"cargo test"},"response":{"interrupted":false,"stderr":"","stdout":"test result: ok"}}',1794813448938);
INSERT INTO events VALUES(6,'01a1e337-d2f6-7654-aa4c-cd181993171b',1,'first-prompt','stop:first:first-prompt:0439b3fad3efa0514fbc737a0db2ee8c','stop','claude-code','first','first-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[]','{"reply":"Fixed.\n\nNext steps:\n- cover refunds"}',1794813448950);
INSERT INTO events VALUES(7,'01a1e337-d302-72be-a038-61bddb192243',1,NULL,'session_end:first:a8a5d4d44e45b32a9d4f0e9c3b50484e:179481344','session_end','claude-code','first','first-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[]','{"reason":"other"}',1794813448962);
INSERT INTO events VALUES(8,'01a1e337-d342-709d-a289-37b2bedf7240',2,'second-prompt','prompt:second:second-prompt:97b4ac83dcb5b889071c2d3e60413f81','prompt','claude-code','second','second-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/second.jsonl','main',NULL,'[]','{"prompt":"Raise the kumquat limit"}',1794813449026);
INSERT INTO events VALUES(9,'01a1e337-d34a-77ee-bb26-3c741f03531d',2,'second-prompt','tool:second:second-1','tool_use','claude-code','second','second-prompt',NULL,'Edit','second-1','/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/second.jsonl','main',NULL,'[{"path":"/srv/foreword/pay/src/limit.rs","role":"modified","size":null,"mtime":null,"hash":null}]','{"input":{"file_path":"/srv/foreword/pay/src/limit.rs","new_string":"MAX_KUMQUATS: u32 = 7","old_string":"MAX_KUMQUATS: u32 = 6"},"response":{"filePath":"/srv/foreword/pay/src/limit.rs","structuredPatch":[{"lines":["-MAX_KUMQUATS: u32 = 6","+MAX_KUMQUATS: u32 = 7"]}]}}',1794813449034);
INSERT INTO events VALUES(10,'01a1e337-d352-7741-a803-a28158258246',2,'second-prompt','stop:second:second-prompt:7a44b505e2e9f4006452ad3a8fbd3598','stop','claude-code','second','second-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/second.jsonl','main',NULL,'[]','{"reply":"The limit is seven now."}',1794813449042);
PRAGMA writable_schema=ON;
INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES('table','texts','texts',0,'CREATE VIRTUAL TABLE texts using fts5 (
    title,
    body,
    tags,
    content = '''',
    contentless_delete = 1,
    tokenize = ''porter unicode61''
)');
CREATE TABLE IF NOT EXISTS 'texts_data'(id INTEGER PRIMARY KEY, block BLOB);
INSERT INTO texts_data VALUES(1,X'062981030c');
INSERT INTO texts_data VALUES(10,X'00000000ff00000101080a000801010101010101010201010202000001030101030300000104010104040000010501010505010101060101060600000107010107070000010801010808000001');
INSERT INTO texts_data VALUES(137438953473,X'000000370730657870697269010204010366697801020201026f660102060104746573740102050202686501020302046f6b656e010207040b08070907');
INSERT INTO texts_data VALUES(274877906945,X'000000690630636f76657201060101050106657870697269010204010366697801080201010201046e657874010601010301026f660102060106726566756e64010601010601047374657001060101040104746573740102050202686501020302046f6b656e010207040c0b0b0b070d0b0907');
INSERT INTO texts_data VALUES(412316860417,X'0000017c0430313031020601010e01056166746572020801011621020467656e74020601013b02026e6402060101050202736b0206010122030473657274020a0301010f200206757468656e7402060102050105626563616d020601011f0105636172676f020e010102080d1810020468616e67020601013102046c6f7365020601013d02036f6465020601010d010465786974020601010c0303706972020e060101120e0511060169020601012501046661696c02120401010408080a150502026978020a020101231e0102696e02020701036e6f770210050101070c0e051101026f66020601012702016e0206010117010470617373020a010106112601027273020a0a01011c1a0202756e0206010119030273740206010203010173020601013c02027263020a0801011a1a0104746573740216010103080d1406100102040203686174020601013603016502080101241802046f6b656e02120901011b0f0d010202010477697468020801010b2302036f7264020601013e040a0d0b09090d0d0c100b0b0a0b0e08110b070f09080d0b0909080b130a09110c');
INSERT INTO texts_data VALUES(549755813889,X'000000f30630616761696e030601010e0303656e74030601011202057373657274030601010702017403060101050105636172676f03080101020b02046c6f7365030601011402046f766572030601010f01056578706972030601010a06016903020401046661696c030801010406020469727374030601010603017803080201011601036e6f77030601010901026f66030206010470617373030601010d0106726566756e64030601011002017303060102040101730306010113020272630306010202010474657374030a050101030b0202686503080301011102046f6b656e0308070102030104776f72640306010115040c0a0c080d0b0b0c060c0b090a070b0d0808090d0a0c');
INSERT INTO texts_data VALUES(687194767361,X'0000002b08306b756d7175617404020401056c696d69740402050104726169730402020103746865040203040c0a09');
INSERT INTO texts_data VALUES(824633720833,X'0000005003306973040601010401076b756d7175617404020401056c696d697404080501010301036e6f7704060101060104726169730402020105736576656e0406010105010374686504080301010204090c0d0a090c');
INSERT INTO texts_data VALUES(962072674305,X'000000eb02303105080101050301013605020801013705020d01056167656e7405060101110202736b05060101070105626563616d05020901056368616e67050601010c02046c6f7365050601011301026973050601011701076b756d71756174050a060701010a01056c696d69740514030101030a050a01020201036d61780504050701036e6f7705060101190104726169730506010108020173050a040101040d02037573740506010203010173050601011202046576656e050601011802027263050a020101020d0103746865050a01010909070103753332050407070104776f72640506010114040906060c090a0c0b091013090a0b0a0a080b0b0c09');
INSERT INTO texts_data VALUES(1099511627777,X'000000a106306167656e74060601010701056368616e67060601010202046c6f7365060601010901026973060601010d01076b756d7175617406020401056c696d69740610050101040a01020301036e6f77060601010f010472616973060202020173060c010105010204010173060601010802046576656e060601010e02027263060c0101030102020103746865060a03010106070104776f7264060601010a040c0c0b090c110a090b080b0c0c');
INSERT INTO texts_data VALUES(9007336693694464,X'04000000000000010000000000000001000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO texts_data VALUES(9007886449508352,X'04000000000000010000000000000000000000000000000000000004000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
CREATE TABLE IF NOT EXISTS 'texts_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
INSERT INTO texts_idx VALUES(1,X'',2);
INSERT INTO texts_idx VALUES(2,X'',2);
INSERT INTO texts_idx VALUES(3,X'',2);
INSERT INTO texts_idx VALUES(4,X'',2);
INSERT INTO texts_idx VALUES(5,X'',2);
INSERT INTO texts_idx VALUES(6,X'',2);
INSERT INTO texts_idx VALUES(7,X'',2);
INSERT INTO texts_idx VALUES(8,X'',2);
CREATE TABLE IF NOT EXISTS 'texts_docsize'(id INTEGER PRIMARY KEY, sz BLOB, origin INTEGER);
INSERT INTO texts_docsize VALUES(1,X'060500',2);
INSERT INTO texts_docsize VALUES(2,X'093e04',3);
INSERT INTO texts_docsize VALUES(3,X'061503',4);
INSERT INTO texts_docsize VALUES(4,X'040500',6);
INSERT INTO texts_docsize VALUES(5,X'0c1802',7);
INSERT INTO texts_docsize VALUES(6,X'040e03',8);
CREATE TABLE IF NOT EXISTS 'texts_config'(k PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO texts_config VALUES('version',4);
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
CREATE TRIGGER observations_text_insert after insert on observations begin
    insert into texts (rowid, title, body, tags)
    values (new.id, new.title, new.subtitle || ' ' || new.facts || ' ' || new.narrative, new.concepts);
end;
CREATE TRIGGER observations_text_update after update on observations begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags)
    values (new.id, new.title, new.subtitle || ' ' || new.facts || ' ' || new.narrative, new.concepts);
end;
CREATE TRIGGER observations_text_delete after delete on observations begin
    delete from texts where rowid = old.id;
end;
CREATE TRIGGER summaries_text_insert after insert on summaries begin
    insert into texts (rowid, title, body, tags)
    values (
        new.id,
        new.request,
        new.investigated || ' ' || new.learned || ' ' || new.completed || ' ' || new.next_steps || ' ' || new.notes,
        new.files_read || ' ' || new.files_edited
    );
end;
CREATE TRIGGER summaries_text_update after update on summaries begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags)
    values (
        new.id,
        new.request,
        new.investigated || ' ' || new.learned || ' ' || new.completed || ' ' || new.next_steps || ' ' || new.notes,
        new.files_read || ' ' || new.files_edited
    );
end;
CREATE TRIGGER summaries_text_delete after delete on summaries begin
    delete from texts where rowid = old.id;
end;
CREATE TRIGGER prompts_text_insert after insert on prompts begin
    insert into texts (rowid, title, body, tags)
    values (new.id, new.text, coalesce(new.reply, ''), '');
end;
CREATE TRIGGER prompts_text_update after update of text, reply on prompts begin
    delete from texts where rowid = old.id;
    insert into texts (rowid, title, body, tags)
    values (new.id, new.text, coalesce(new.reply, ''), '');
end;
CREATE TRIGGER prompts_text_delete after delete on prompts begin
    delete from texts where rowid = old.id;
end;
PRAGMA writable_schema=OFF;
COMMIT;
pragma user_version = 1;
