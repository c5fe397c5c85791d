-- What people say about the merge queue: entries that wait for them, and branches on which nothing
-- lands for now.
ALTER TABLE queue_entries ADD COLUMN stopped text;

CREATE TABLE freezes (
    project uuid NOT NULL,
    branch  text NOT NULL,
    reason  text NOT NULL,
    at      bigint NOT NULL,
    PRIMARY KEY (project, branch)
);
