-- The database of a hub at version 1, as sqlite3's .dump writes it.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE principals(id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, type TEXT NOT NULL,
  created_ms INTEGER NOT NULL) STRICT;
INSERT INTO principals VALUES('5e9ecfc04957053f60648a3e','tester','user',1767225600000);
INSERT INTO principals VALUES('5e9ecfc04957053f60648a3f','team','org',1767225600001);
CREATE TABLE tokens(id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, hint TEXT NOT NULL,
  name TEXT NOT NULL, role TEXT NOT NULL, principal TEXT NOT NULL REFERENCES principals(id),
  namespaces TEXT NOT NULL, created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL,
  used_ms INTEGER NOT NULL, revoked_ms INTEGER NOT NULL) STRICT;
INSERT INTO tokens VALUES('t-1','abababababababababababababababababababababababababababababababab','wxyz','laptop','user','5e9ecfc04957053f60648a3e','["tester","team"]',1767225600002,0,1767225700000,0);
INSERT INTO tokens VALUES('t-2','cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd','abcd','old','admin','5e9ecfc04957053f60648a3e','[]',1767225600003,1767312000000,0,1767230000000);
CREATE TABLE jobs(seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, ns TEXT NOT NULL,
  kind INTEGER NOT NULL, spec TEXT NOT NULL, secrets TEXT NOT NULL, labels TEXT NOT NULL,
  expose TEXT NOT NULL, initiator_type TEXT NOT NULL, initiator_id TEXT NOT NULL,
  initiator_name TEXT NOT NULL, stage INTEGER NOT NULL, message TEXT NOT NULL, image TEXT NOT NULL,
  notes TEXT NOT NULL, attempt INTEGER NOT NULL, created_ms INTEGER NOT NULL,
  started_ms INTEGER NOT NULL, finished_ms INTEGER NOT NULL, health_seen INTEGER NOT NULL,
  schedule TEXT NOT NULL) STRICT;
INSERT INTO jobs VALUES(1,'6a0000000000000000000001','tester',0,'{"command":["true"]}','{}','{"name":"a"}','{"ports":[],"portsPublic":[]}','user','5e9ecfc04957053f60648a3e','tester',2,'','python:3.12','[]',1,1767225600010,1767225601000,1767225602000,0,'');
INSERT INTO jobs VALUES(4,'6a0000000000000000000004','team',1,'{"command":["/bin/sh","-c","x"]}','{"SBX_TOKEN":"s"}','{"hf-sandbox":"1","name":"b"}','{"ports":[49983,8000],"portsPublic":[8000]}','scheduled-job','s1','',1,'café','host (alias of python:3.12)','["no network"]',2,1767225600020,1767225603000,0,1,'s1');
CREATE TABLE job_labels(seq INTEGER NOT NULL REFERENCES jobs(seq) ON DELETE CASCADE,
  key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY(key, value, seq)) STRICT, WITHOUT ROWID;
INSERT INTO job_labels VALUES(1,'name','a');
INSERT INTO job_labels VALUES(4,'hf-sandbox','1');
INSERT INTO job_labels VALUES(4,'name','b');
CREATE TABLE schedules(id TEXT PRIMARY KEY, ns TEXT NOT NULL, spec TEXT NOT NULL,
  secrets TEXT NOT NULL, cron TEXT NOT NULL, principal TEXT NOT NULL, suspended INTEGER NOT NULL,
  concurrent INTEGER NOT NULL, last_job TEXT NOT NULL, created_ms INTEGER NOT NULL,
  last_ms INTEGER NOT NULL, next_ms INTEGER NOT NULL) STRICT;
INSERT INTO schedules VALUES('s1','team','{"command":["x"]}','{}','@hourly','5e9ecfc04957053f60648a3e',0,0,'6a0000000000000000000004',1767225600004,1767225600020,1767229200000);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('jobs',7);
CREATE INDEX jobs_by_ns ON jobs(ns, seq);
CREATE INDEX jobs_live ON jobs(stage) WHERE stage < 2;
CREATE INDEX jobs_ended ON jobs(finished_ms) WHERE stage >= 2;
CREATE INDEX job_labels_of ON job_labels(seq);
COMMIT;
PRAGMA application_id = 1130461512;
PRAGMA user_version = 1;
