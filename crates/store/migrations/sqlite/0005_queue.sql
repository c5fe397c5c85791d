-- What people say about the merge queue: entries that wait for them, and branches on which nothing
-- lands for now.
ALTER TABLE queue_entries ADD COLUMN stopped TEXT;

CREATE TABLE freezes (
    project BLOB NOT NULL,
    branch  TEXT NOT NULL,
    reason  TEXT NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (project, branch)
) STRICT, WITHOUT ROWID;
