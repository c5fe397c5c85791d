-- The tables of Woodward for several machines. Times are milliseconds since 1970; `doc` is JSON of
-- the record (text: it is never searched in); the other columns derive from it.

-- The one clock that judges leases. STABLE, so that an index can be searched by it.
CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT (extract(epoch FROM statement_timestamp()) * 1000)::bigint $$;

CREATE TABLE projects (
    id         uuid PRIMARY KEY,
    name       text NOT NULL UNIQUE,
    root       text NOT NULL,
    created_at bigint NOT NULL
);

CREATE TABLE tasks (
    id         uuid PRIMARY KEY,
    project    uuid NOT NULL REFERENCES projects (id),
    name       text NOT NULL,
    create_key text,
    epoch      bigint NOT NULL,
    version    bigint NOT NULL,
    state      text NOT NULL,
    fresh      bigint NOT NULL,
    claim_key  bigint,
    run_at     bigint NOT NULL,
    holder     uuid,
    doc        text NOT NULL,
    updated_at bigint NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

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
    task    uuid NOT NULL,
    on_task uuid NOT NULL,
    PRIMARY KEY (task, on_task)
);
CREATE INDEX task_after_on ON task_after (on_task, task);

CREATE TABLE runs (
    id         uuid PRIMARY KEY,
    task       uuid NOT NULL,
    epoch      bigint NOT NULL,
    state      text NOT NULL,
    started_at bigint NOT NULL,
    doc        text NOT NULL
);
CREATE INDEX runs_task ON runs (task, started_at, id);

-- Append-only. A transaction has its number before it draws a place in the log: a reader that sees
-- a later place can therefore tell, by waiting for the transactions that were open then, whether an
-- empty place before it will ever be filled.
CREATE SEQUENCE event_seq CACHE 1;
CREATE FUNCTION next_event_seq() RETURNS bigint LANGUAGE sql VOLATILE AS
    $$ SELECT CASE WHEN pg_current_xact_id() IS NOT NULL THEN nextval('event_seq') END $$;
CREATE TABLE events (
    seq     bigint PRIMARY KEY DEFAULT next_event_seq(),
    id      uuid NOT NULL UNIQUE,
    project uuid,
    task    uuid,
    version bigint,
    at      bigint NOT NULL,
    kind    text NOT NULL,
    policy  text,
    doc     text NOT NULL
);
CREATE UNIQUE INDEX events_task ON events (task, version) WHERE task IS NOT NULL;

-- The policies that events were decided under, by digest.
CREATE TABLE policies (
    digest text PRIMARY KEY,
    doc    text NOT NULL
);

-- The outbox. `run_at` is when an effect may be handed out (again).
CREATE TABLE effects (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key         text NOT NULL UNIQUE,
    task        uuid NOT NULL,
    epoch       bigint NOT NULL,
    worker      uuid,
    doc         text NOT NULL,
    state       text NOT NULL DEFAULT 'pending',
    attempt     bigint NOT NULL DEFAULT 0,
    run_at      bigint NOT NULL DEFAULT 0,
    last_error  text,
    finished_at bigint
) WITH (fillfactor = 80);
CREATE INDEX effects_pending ON effects (task, id) WHERE state = 'pending';
CREATE INDEX effects_finished ON effects (finished_at) WHERE finished_at IS NOT NULL;

-- Tasks, ports, databases, the landing right: one table.
CREATE TABLE leases (
    resource   text PRIMARY KEY,
    task       uuid,
    holder     uuid,
    epoch      bigint NOT NULL,
    claim      uuid,
    expires_at bigint NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX leases_expiry ON leases (expires_at) WHERE holder IS NOT NULL;
CREATE INDEX leases_claim ON leases (claim) WHERE claim IS NOT NULL;

CREATE TABLE gate_results (
    task      uuid NOT NULL,
    epoch     bigint NOT NULL,
    commit_id text NOT NULL,
    gate      text NOT NULL,
    doc       text NOT NULL,
    PRIMARY KEY (task, epoch, commit_id, gate)
);

CREATE TABLE queue_entries (
    task      uuid PRIMARY KEY,
    project   uuid NOT NULL,
    order_key bigint NOT NULL,
    hold      text,
    doc       text NOT NULL
);
CREATE INDEX queue_entries_order ON queue_entries (project, order_key, task);

CREATE TABLE intents (
    id         uuid PRIMARY KEY,
    project    uuid NOT NULL,
    branch     text NOT NULL,
    state      text NOT NULL,
    created_at bigint NOT NULL,
    doc        text NOT NULL
);
-- One unfinished landing a branch.
CREATE UNIQUE INDEX intents_pending ON intents (project, branch) WHERE state = 'pending';

CREATE TABLE messages (
    id         uuid PRIMARY KEY,
    task       uuid NOT NULL,
    actor      text NOT NULL,
    delivery   text NOT NULL,
    created_at bigint NOT NULL,
    body       text NOT NULL
);
CREATE INDEX messages_task ON messages (task, created_at, id);

CREATE TABLE workers (
    id         uuid PRIMARY KEY,
    host       text NOT NULL,
    pid        bigint NOT NULL,
    version    text NOT NULL,
    started_at bigint NOT NULL,
    seen_at    bigint NOT NULL
);
