-- What gates said of content: the same content is not looked at twice. `key` is made of the content,
-- the gate's definition and the tools.
CREATE TABLE gate_cache (
    project uuid NOT NULL,
    key     text NOT NULL,
    at      bigint NOT NULL,
    doc     text NOT NULL,
    PRIMARY KEY (project, key)
);
CREATE INDEX gate_cache_age ON gate_cache (project, at);
