-- What gates said of content: the same content is not looked at twice. `key` is made of the content,
-- the gate's definition and the tools.
CREATE TABLE gate_cache (
    project BLOB NOT NULL,
    key     TEXT NOT NULL,
    at      INTEGER NOT NULL,
    doc     TEXT NOT NULL,
    PRIMARY KEY (project, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX gate_cache_age ON gate_cache (project, at);
