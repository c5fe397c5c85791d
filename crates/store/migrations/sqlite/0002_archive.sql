-- Finished tasks move here, out of the hot table.
CREATE TABLE tasks_archive (
    id          BLOB NOT NULL PRIMARY KEY,
    project     BLOB NOT NULL,
    name        TEXT NOT NULL,
    create_key  TEXT,
    doc         TEXT NOT NULL,
    finished_at INTEGER NOT NULL,
    archived_at INTEGER NOT NULL
) STRICT;
CREATE INDEX tasks_archive_name ON tasks_archive (project, name, finished_at);
CREATE UNIQUE INDEX tasks_archive_key ON tasks_archive (project, create_key)
    WHERE create_key IS NOT NULL;
CREATE INDEX tasks_archive_age ON tasks_archive (archived_at);
