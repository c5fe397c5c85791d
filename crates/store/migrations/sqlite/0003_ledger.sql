-- How far each follower of the log has come.
CREATE TABLE cursors (
    name TEXT NOT NULL PRIMARY KEY,
    seq  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What shall be done once for a piece of evidence: reactions, notifications, comments, signals.
-- `key` names the evidence, `run_at` is when an entry may be handed out (again).
CREATE TABLE ledger (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    key         TEXT NOT NULL UNIQUE,
    kind        TEXT NOT NULL,
    project     BLOB NOT NULL,
    task        BLOB,
    state       TEXT NOT NULL,
    attempt     INTEGER NOT NULL DEFAULT 0,
    run_at      INTEGER NOT NULL,
    holder      BLOB,
    doc         TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    finished_at INTEGER
) STRICT;
CREATE INDEX ledger_due ON ledger (kind, run_at, id) WHERE state = 'pending';
CREATE INDEX ledger_held ON ledger (holder) WHERE state = 'pending' AND holder IS NOT NULL;
CREATE INDEX ledger_task ON ledger (task, kind, id) WHERE task IS NOT NULL;
CREATE INDEX ledger_project ON ledger (project, kind, id);
CREATE INDEX ledger_finished ON ledger (finished_at) WHERE finished_at IS NOT NULL;
