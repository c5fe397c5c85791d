-- Finished tasks move here, out of the hot table.
CREATE TABLE tasks_archive (
    id          uuid PRIMARY KEY,
    project     uuid NOT NULL,
    name        text NOT NULL,
    create_key  text,
    doc         text NOT NULL,
    finished_at bigint NOT NULL,
    archived_at bigint NOT NULL
);
CREATE INDEX tasks_archive_name ON tasks_archive (project, name, finished_at);
CREATE UNIQUE INDEX tasks_archive_key ON tasks_archive (project, create_key)
    WHERE create_key IS NOT NULL;
CREATE INDEX tasks_archive_age ON tasks_archive (archived_at);
