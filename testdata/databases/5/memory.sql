PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE projects (
    id integer primary key,
    name text not null,
    created_at integer not null
) strict;
INSERT INTO projects VALUES(1,'pay',1794813451613);
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
INSERT INTO items VALUES(1,'01a1e337-dcfc-7d34-ba12-c06597160954','prompt');
INSERT INTO items VALUES(2,'01a1e337-dd16-72ec-a3e5-8afd1f0dfacb','observation');
INSERT INTO items VALUES(3,'01a1e337-dd1e-7af5-b52f-f5c42299b42c','summary');
INSERT INTO items VALUES(4,'01a1e337-dd7a-7d44-b536-b88bb8af299e','prompt');
INSERT INTO items VALUES(5,'01a1e337-dd84-7a9b-84f9-29a885315d90','observation');
INSERT INTO items VALUES(6,'01a1e337-dd92-725d-8c4b-7209555e54f4','summary');
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
INSERT INTO sessions VALUES(1,'claude-code','first',1,'completed','Fix the expiry test of tokens','main','/srv/foreword/pay','/transcripts/first.jsonl',1794813451510,1794813451562,NULL);
INSERT INTO sessions VALUES(2,'claude-code','second',1,'active','Raise the limit','main','/srv/foreword/pay','/transcripts/second.jsonl',1794813451642,1794813451666,'It is seven now.');
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
INSERT INTO prompts VALUES(1,1,1,'first-prompt','Fix the expiry test of tokens',replace('Fixed.\n\nNext steps:\n- cover refunds','\n',char(10)),1794813451516);
INSERT INTO prompts VALUES(4,2,1,'second-prompt','Raise the kumquat limit','The limit is seven now.',1794813451642);
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
INSERT INTO observations VALUES(2,1,1,1,'trouble:01a1e337-dd09-75e3-9036-f9fc0acccbf8','bugfix','Fixed “assertion failed: now <= expires” in src/token.rs','`cargo test` failed and passes now','["`cargo test` failed with exit code 101: assertion failed: now <= expires","`cargo test` passes after one failing run","src/token.rs: `now < expires` became `now <= expires`"]','Asked: “Fix the expiry test of tokens”. `cargo test` failed with “assertion failed: now <= expires”. Changed src/token.rs. After that `cargo test` passed. The agent''s closing words: “Fixed.”','["token","rust","testing","authentication"]','agent',NULL,'main',NULL,'offline',NULL,NULL,'["01a1e337-dd09-75e3-9036-f9fc0acccbf8","01a1e337-dd0e-72e1-bbca-67fd121a2924","01a1e337-dd16-7141-b802-c001ad194b68"]',1794813451542,NULL);
INSERT INTO observations VALUES(5,2,1,4,'01a1e337-dd7a-748a-8ad7-c398200cf4ee/0','decision','Kumquat limit raised to seven','Six was too few','["MAX_KUMQUATS is 7"]','Orders of seven were refused, so the limit went up.','["limits"]','agent',NULL,'main',NULL,'openai','test-model','1','["01a1e337-dd84-743f-83b9-ecc06b6c0e35"]',1794813451652,NULL);
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
INSERT INTO summaries VALUES(3,1,1,1,'Fix the expiry test of tokens','','`cargo test` failed at first: assertion failed: now <= expires.','`cargo test` passes again.','cover refunds','[]','["src/token.rs"]','The agent''s closing words: “Fixed.”','offline',NULL,NULL,1794813451550);
INSERT INTO summaries VALUES(6,2,1,4,'Raise the limit','src/limit.rs','The limit is one constant.','It is seven now.','Tell the shops.','[]','[]','','openai','test-model','1',1794813451666);
CREATE TABLE processed_events (
    event_id text primary key,
    key text not null unique,
    outcome text not null check (outcome in ('stored', 'nothing')),
    at integer not null
, provider text) strict, without rowid;
INSERT INTO processed_events VALUES('01a1e337-dcf6-73b1-843b-75c619a4b9da','session_start:first:678106dbb654a6978b6acbc7830b726e:179481345','stored',1794813451613,'offline');
INSERT INTO processed_events VALUES('01a1e337-dcfc-722f-870c-c4e32a2940ac','prompt:first:first-prompt:e6eb7ea520d066388ffe37dbc8126613','stored',1794813451613,'offline');
INSERT INTO processed_events VALUES('01a1e337-dd09-75e3-9036-f9fc0acccbf8','tool:first:first-1','stored',1794813451613,'offline');
INSERT INTO processed_events VALUES('01a1e337-dd0e-72e1-bbca-67fd121a2924','tool:first:first-2','stored',1794813451613,'offline');
INSERT INTO processed_events VALUES('01a1e337-dd16-7141-b802-c001ad194b68','tool:first:first-3','stored',1794813451613,'offline');
INSERT INTO processed_events VALUES('01a1e337-dd1e-77d5-b043-37e1f4ba73c1','stop:first:first-prompt:0439b3fad3efa0514fbc737a0db2ee8c','stored',1794813451613,'offline');
INSERT INTO processed_events VALUES('01a1e337-dd2a-7521-a39e-3437f0671891','session_end:first:a8a5d4d44e45b32a9d4f0e9c3b50484e:179481345','stored',1794813451613,'offline');
INSERT INTO processed_events VALUES('01a1e337-dd7a-748a-8ad7-c398200cf4ee','prompt:second:second-prompt:97b4ac83dcb5b889071c2d3e60413f81','stored',1794813451791,'openai');
INSERT INTO processed_events VALUES('01a1e337-dd84-743f-83b9-ecc06b6c0e35','tool:second:second-1','stored',1794813451791,'openai');
INSERT INTO processed_events VALUES('01a1e337-dd92-75ab-905c-a6348e499570','stop:second:second-prompt:7a44b505e2e9f4006452ad3a8fbd3598','stored',1794813451791,'openai');
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
INSERT INTO events VALUES(1,'01a1e337-dcf6-73b1-843b-75c619a4b9da',1,'first-prompt','session_start:first:678106dbb654a6978b6acbc7830b726e:179481345','session_start','claude-code','first','first-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[]','{"source":"startup"}',1794813451510);
INSERT INTO events VALUES(2,'01a1e337-dcfc-722f-870c-c4e32a2940ac',1,'first-prompt','prompt:first:first-prompt:e6eb7ea520d066388ffe37dbc8126613','prompt','claude-code','first','first-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[]','{"prompt":"Fix the expiry test of tokens"}',1794813451516);
INSERT INTO events VALUES(3,'01a1e337-dd09-75e3-9036-f9fc0acccbf8',1,'first-prompt','tool:first:first-1','tool_failure','claude-code','first','first-prompt',NULL,'Bash','first-1','/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[]','{"input":{"command":"cargo test"},"error":"Exit code 101\nthread ''expiry'' panicked at src/token.rs:9:5:\nassertion failed: now <= expires"}',1794813451529);
INSERT INTO events VALUES(4,'01a1e337-dd0e-72e1-bbca-67fd121a2924',1,'first-prompt','tool:first:first-2','tool_use','claude-code','first','first-prompt',NULL,'Edit','first-2','/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[{"path":"/srv/foreword/pay/src/token.rs","role":"modified","size":null,"mtime":null,"hash":null}]','{"input":{"file_path":"/srv/foreword/pay/src/token.rs","new_string":"now <= expires","old_string":"now < expires"},"response":{"filePath":"/srv/foreword/pay/src/token.rs","structuredPatch":[{"lines":["-now < expires","+now <= expires"]}]}}',1794813451534);
INSERT INTO events VALUES(5,'01a1e337-dd16-7141-b802-c001ad194b68',1,'first-prompt','tool:first:first-3','tool_use','claude-code','first','first-prompt',NULL,'Bash','first-3','/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[]','{"input":{"command":"cargo test"},"response":{"interrupted":false,"stderr":"","stdout":"test result: ok"}}',1794813451542);
INSERT INTO events VALUES(6,'01a1e337-dd1e-77d5-b043-37e1f4ba73c1',1,'first-prompt','stop:first:first-prompt:0439b3fad3efa0514fbc737a0db2ee8c','stop','claude-code','first','first-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[]','{"reply":"Fixed.\n\nNext steps:\n- cover refunds"}',1794813451550);
INSERT INTO events VALUES(7,'01a1e337-dd2a-7521-a39e-3437f0671891',1,NULL,'session_end:first:a8a5d4d44e45b32a9d4f0e9c3b50484e:179481345','session_end','claude-code','first','first-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/first.jsonl','main',NULL,'[]','{"reason":"other"}',1794813451562);
INSERT INTO events VALUES(8,'01a1e337-dd7a-748a-8ad7-c398200cf4ee',2,'second-prompt','prompt:second:second-prompt:97b4ac83dcb5b889071c2d3e60413f81','prompt','claude-code','second','second-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/second.jsonl','main',NULL,'[]','{"prompt":"Raise the kumquat limit"}',1794813451642);
INSERT INTO events VALUES(9,'01a1e337-dd84-743f-83b9-ecc06b6c0e35',2,'second-prompt','tool:second:second-1','tool_use','claude-code','second','second-prompt',NULL,'Edit','second-1','/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/second.jsonl','main',NULL,'[{"path":"/srv/foreword/pay/src/limit.rs","role":"modified","size":null,"mtime":null,"hash":null}]','{"input":{"file_path":"/srv/foreword/pay/src/limit.rs","new_string":"MAX_KUMQUATS: u32 = 7","old_string":"MAX_KUMQUATS: u32 = 6"},"response":{"filePath":"/srv/foreword/pay/src/limit.rs","structuredPatch":[{"lines":["-MAX_KUMQUATS: u32 = 6","+MAX_KUMQUATS: u32 = 7"]}]}}',1794813451652);
INSERT INTO events VALUES(10,'01a1e337-dd92-75ab-905c-a6348e499570',2,'second-prompt','stop:second:second-prompt:7a44b505e2e9f4006452ad3a8fbd3598','stop','claude-code','second','second-prompt',NULL,NULL,NULL,'/srv/foreword/pay','/srv/foreword/pay','example.com/shop/pay','/srv/foreword/pay','/transcripts/second.jsonl','main',NULL,'[]','{"reply":"The limit is seven now."}',1794813451666);
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
INSERT INTO ledger VALUES(1,1794813451792,'openai','test-model','second',3,61,1,1158,157,0,0,NULL,'answered',NULL,NULL,NULL);
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
INSERT INTO texts_data VALUES(10,X'00000000ff000001010a0e000a0101010101010101020101020200000103010103030101010401010404000001050101050500000106010106060101010701010707000001080101080801010109010109090000010a01010a0a000001');
INSERT INTO texts_data VALUES(137438953473,X'00000043073065787069726901060101040103666978010601010201026f660106010106010474657374010601010502026865010601010302046f6b656e0106010107040d0a090b09');
INSERT INTO texts_data VALUES(274877906945,X'000000730630636f766572010601010b01066578706972690106010104010366697801080101020801046e657874010601010901026f6601060101060106726566756e64010601010c010473746570010601010a010474657374010601010502026865010601010302046f6b656e0106010107040c0d0b0b090d0b0b09');
INSERT INTO texts_data VALUES(412316860417,X'0000017c0430313031020601010e01056166746572020801011621020467656e74020601013b02026e6402060101050202736b0206010122030473657274020a0301010f200206757468656e7402060102050105626563616d020601011f0105636172676f020e010102080d1810020468616e67020601013102046c6f7365020601013d02036f6465020601010d010465786974020601010c0303706972020e060101120e0511060169020601012501046661696c02120401010408080a150502026978020a020101231e0102696e02020701036e6f770210050101070c0e051101026f66020601012702016e0206010117010470617373020a010106112601027273020a0a01011c1a0202756e0206010119030273740206010203010173020601013c02027263020a0801011a1a0104746573740216010103080d1406100102040203686174020601013603016502080101241802046f6b656e02120901011b0f0d010202010477697468020801010b2302036f7264020601013e040a0d0b09090d0d0c100b0b0a0b0e08110b070f09080d0b0909080b130a09110c');
INSERT INTO texts_data VALUES(549755813889,X'0000017c0430313031020601010e01056166746572020801011621020467656e74020601013b02026e6402060101050202736b0206010122030473657274020a0301010f200206757468656e7402060102050105626563616d020601011f0105636172676f020e010102080d1810020468616e67020601013102046c6f7365020601013d02036f6465020601010d010465786974020601010c0303706972020e060101120e0511060169020601012501046661696c02120401010408080a150502026978020a020101231e0102696e02020701036e6f770210050101070c0e051101026f66020601012702016e0206010117010470617373020a010106112601027273020a0a01011c1a0202756e0206010119030273740206010203010173020601013c02027263020a0801011a1a0104746573740216010103080d1406100102040203686174020601013603016502080101241802046f6b656e02120901011b0f0d010202010477697468020801010b2302036f7264020601013e040a0d0b09090d0d0c100b0b0a0b0e08110b070f09080d0b0909080b130a09110c');
INSERT INTO texts_data VALUES(687194767361,X'000000f30630616761696e030601010e0303656e74030601011202057373657274030601010702017403060101050105636172676f03080101020b02046c6f7365030601011402046f766572030601010f01056578706972030601010a06016903020401046661696c030801010406020469727374030601010603017803080201011601036e6f77030601010901026f66030206010470617373030601010d0106726566756e64030601011002017303060102040101730306010113020272630306010202010474657374030a050101030b0202686503080301011102046f6b656e0308070102030104776f72640306010115040c0a0c080d0b0b0c060c0b090a070b0d0808090d0a0c');
INSERT INTO texts_data VALUES(824633720833,X'0000003308306b756d71756174040601010401056c696d69740406010105010472616973040601010201037468650406010103040e0c0b');
INSERT INTO texts_data VALUES(962072674305,X'0000005403306973040601010801076b756d71756174040601010401056c696d697404080101050401036e6f77040601010a01047261697304060101020105736576656e0406010109010374686504080101030504090e0d0a0b0c');
INSERT INTO texts_data VALUES(1099511627777,X'000000cb02303705060101090103666577050601010501026973050601010801076b756d7175617405080201010701056c696d6974050e0301011101020201036d6178050601010601026f66050601010b020472646572050601010a010472616973050204020465667573050601010e0105736576656e05080601010c02026978050601010202016f050601010f0103746865050601011002016f05020503016f05060101040102757005060101130102776105060101030203656e74050601011203027265050601010d04080a090f100a090b090b0d09080a060809090a');
INSERT INTO texts_data VALUES(1236950581249,X'000000cb02303705060101090103666577050601010501026973050601010801076b756d7175617405080201010701056c696d6974050e0301011101020201036d6178050601010601026f66050601010b020472646572050601010a010472616973050204020465667573050601010e0105736576656e05080601010c02026978050601010202016f050601010f0103746865050601011002016f05020503016f05060101040102757005060101130102776105060101030203656e74050601011203027265050601010d04080a090f100a090b090b0d09080a060809090a');
INSERT INTO texts_data VALUES(1374389534721,X'0000008c0930636f6e7374616e74060601010901026973060801010706020174060601010a01056c696d6974060a040101030501036e6f77060601010d01026f6e060601010801047261697306020202017306060101040105736576656e060601010c0203686f700606010110020272630606010102010474656c6c060601010e02026865060a030101050c040f0a080e0a0909080c0a090b');
INSERT INTO texts_data VALUES(9007336693694464,X'04000000000000010000000000000001000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO texts_data VALUES(9007611571601408,X'04000000000000010000000000000000000000020000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO texts_data VALUES(9008023888461824,X'04000000000000010000000000000000000000000000000000000004000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO texts_data VALUES(9008298766368768,X'04000000000000010000000000000000000000000000000000000000000000050000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
CREATE TABLE IF NOT EXISTS 'texts_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
INSERT INTO texts_idx VALUES(1,X'',2);
INSERT INTO texts_idx VALUES(2,X'',2);
INSERT INTO texts_idx VALUES(3,X'',2);
INSERT INTO texts_idx VALUES(4,X'',2);
INSERT INTO texts_idx VALUES(5,X'',2);
INSERT INTO texts_idx VALUES(6,X'',2);
INSERT INTO texts_idx VALUES(7,X'',2);
INSERT INTO texts_idx VALUES(8,X'',2);
INSERT INTO texts_idx VALUES(9,X'',2);
INSERT INTO texts_idx VALUES(10,X'',2);
CREATE TABLE IF NOT EXISTS 'texts_docsize'(id INTEGER PRIMARY KEY, sz BLOB, origin INTEGER);
INSERT INTO texts_docsize VALUES(1,X'000b0000',2);
INSERT INTO texts_docsize VALUES(2,X'093e0400',4);
INSERT INTO texts_docsize VALUES(3,X'06150300',5);
INSERT INTO texts_docsize VALUES(4,X'00090000',7);
INSERT INTO texts_docsize VALUES(5,X'05120100',9);
INSERT INTO texts_docsize VALUES(6,X'030f0000',10);
CREATE TABLE IF NOT EXISTS 'texts_config'(k PRIMARY KEY, v) WITHOUT ROWID;
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
from prompts;
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
PRAGMA writable_schema=OFF;
COMMIT;
pragma user_version = 5;
