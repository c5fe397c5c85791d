-- The tables of Woodward, embedded form. Times are milliseconds since 1970, ids are 16-byte UUIDs,
-- `doc` is JSON of the record; the other columns are what is searched by and derive from it.

CREATE TABLE projects (
    id         BLOB NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    root       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
    id         BLOB NOT NULL PRIMARY KEY,
    project    BLOB NOT NULL REFERENCES projects (id),
    name       TEXT NOT NULL,
    create_key TEXT,
    epoch      INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    state      TEXT NOT NULL,
    fresh      INTEGER NOT NULL,
    claim_key  INTEGER,
    run_at     INTEGER NOT NULL,
    holder     BLOB,
    doc        TEXT NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

-- One open task of a name.
CREATE UNIQUE INDEX tasks_open_name ON tasks (project, name)
    WHERE state NOT IN ('landed', 'cancelled', 'superseded');
CREATE UNIQUE INDEX tasks_create_key ON tasks (project, create_key) WHERE create_key IS NOT NULL;
-- Exactly the order in which tasks are claimed.
CREATE INDEX tasks_claim ON tasks (project, fresh, claim_key, id) WHERE claim_key IS NOT NULL;
-- What limits count.
CREATE INDEX tasks_load ON tasks (project, state)
    WHERE state IN ('preparing', 'working', 'waiting', 'verifying', 'review');
CREATE INDEX tasks_finished ON tasks (updated_at)
    WHERE state IN ('landed', 'cancelled', 'superseded');

CREATE TABLE task_after (
    task    BLOB NOT NULL,
    on_task BLOB NOT NULL,
    PRIMARY KEY (task, on_task)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_after_on ON task_after (on_task, task);

CREATE TABLE runs (
    id         BLOB NOT NULL PRIMARY KEY,
    task       BLOB NOT NULL,
    epoch      INTEGER NOT NULL,
    state      TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    doc        TEXT NOT NULL
) STRICT;
CREATE INDEX runs_task ON runs (task, started_at, id);

-- Append-only. `seq` is the order of commit: one writer.
CREATE TABLE events (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    id      BLOB NOT NULL UNIQUE,
    project BLOB,
    task    BLOB,
    version INTEGER,
    at      INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    policy  TEXT,
    doc     TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_task ON events (task, version) WHERE task IS NOT NULL;

-- The policies that events were decided under, by digest.
CREATE TABLE policies (
    digest TEXT NOT NULL PRIMARY KEY,
    doc    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The outbox. `run_at` is when an effect may be handed out (again).
CREATE TABLE effects (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    key         TEXT NOT NULL UNIQUE,
    task        BLOB NOT NULL,
    epoch       INTEGER NOT NULL,
    worker      BLOB,
    doc         TEXT NOT NULL,
    state       TEXT NOT NULL DEFAULT 'pending',
    attempt     INTEGER NOT NULL DEFAULT 0,
    run_at      INTEGER NOT NULL DEFAULT 0,
    last_error  TEXT,
    finished_at INTEGER
) STRICT;
CREATE INDEX effects_pending ON effects (task, id) WHERE state = 'pending';
CREATE INDEX effects_finished ON effects (finished_at) WHERE finished_at IS NOT NULL;

-- Tasks, ports, databases, the landing right: one table.
CREATE TABLE leases (
    resource   TEXT NOT NULL PRIMARY KEY,
    task       BLOB,
    holder     BLOB,
    epoch      INTEGER NOT NULL,
    claim      BLOB,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX leases_expiry ON leases (expires_at) WHERE holder IS NOT NULL;
CREATE INDEX leases_claim ON leases (claim) WHERE claim IS NOT NULL;

CREATE TABLE gate_results (
    task    BLOB NOT NULL,
    epoch   INTEGER NOT NULL,
    commit_id TEXT NOT NULL,
    gate    TEXT NOT NULL,
    doc     TEXT NOT NULL,
    PRIMARY KEY (task, epoch, commit_id, gate)
) STRICT;

CREATE TABLE queue_entries (
    task      BLOB NOT NULL PRIMARY KEY,
    project   BLOB NOT NULL,
    order_key INTEGER NOT NULL,
    hold      TEXT,
    doc       TEXT NOT NULL
) STRICT;
CREATE INDEX queue_entries_order ON queue_entries (project, order_key, task);

CREATE TABLE intents (
    id         BLOB NOT NULL PRIMARY KEY,
    project    BLOB NOT NULL,
    branch     TEXT NOT NULL,
    state      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    doc        TEXT NOT NULL
) STRICT;
-- One unfinished landing a branch.
CREATE UNIQUE INDEX intents_pending ON intents (project, branch) WHERE state = 'pending';

CREATE TABLE messages (
    id         BLOB NOT NULL PRIMARY KEY,
    task       BLOB NOT NULL,
    actor      TEXT NOT NULL,
    delivery   TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    body       TEXT NOT NULL
) STRICT;
CREATE INDEX messages_task ON messages (task, created_at, id);

CREATE TABLE workers (
    id         BLOB NOT NULL PRIMARY KEY,
    host       TEXT NOT NULL,
    pid        INTEGER NOT NULL,
    version    TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
