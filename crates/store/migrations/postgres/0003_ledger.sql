-- How far each follower of the log has come.
CREATE TABLE cursors (
    name text PRIMARY KEY,
    seq  bigint NOT NULL
) WITH (fillfactor = 70);

-- What shall be done once for a piece of evidence: reactions, notifications, comments, signals.
-- `key` names the evidence, `run_at` is when an entry may be handed out (again).
CREATE TABLE ledger (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key         text NOT NULL UNIQUE,
    kind        text NOT NULL,
    project     uuid NOT NULL,
    task        uuid,
    state       text NOT NULL,
    attempt     bigint NOT NULL DEFAULT 0,
    run_at      bigint NOT NULL,
    holder      uuid,
    doc         text NOT NULL,
    created_at  bigint NOT NULL,
    finished_at bigint
) WITH (fillfactor = 80);
CREATE INDEX ledger_due ON ledger (kind, run_at, id) WHERE state = 'pending';
CREATE INDEX ledger_held ON ledger (holder) WHERE state = 'pending' AND holder IS NOT NULL;
CREATE INDEX ledger_task ON ledger (task, kind, id) WHERE task IS NOT NULL;
CREATE INDEX ledger_project ON ledger (project, kind, id);
CREATE INDEX ledger_finished ON ledger (finished_at) WHERE finished_at IS NOT NULL;
