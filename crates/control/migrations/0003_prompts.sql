-- Prompts that are kept for environments until their hosts have taken them.
--
-- They end with their environment's row: a restored project does not go on with what was asked of
-- it before it was deleted.

CREATE TABLE prompts (
    -- The order of acceptance.
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    env        TEXT NOT NULL REFERENCES environments (id) ON DELETE CASCADE,
    client     TEXT NOT NULL,
    thread     TEXT NOT NULL,
    -- SHA-256 of what was asked, by which a repeated request is told from another one.
    digest     BLOB NOT NULL,
    -- The call, as JSON. NULL once the host has taken or refused it.
    call       TEXT,
    state      TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'refused')),
    created_at INTEGER NOT NULL,
    settled_at INTEGER,
    -- The event of the host's log that took it.
    taken      INTEGER,
    -- Why the host refused it, as JSON.
    problem    TEXT,
    UNIQUE (env, client)
) STRICT;
CREATE INDEX prompts_in_order ON prompts (env, seq);
CREATE INDEX prompts_waiting ON prompts (env, seq) WHERE state = 'waiting';
CREATE INDEX prompts_by_settled ON prompts (settled_at) WHERE settled_at IS NOT NULL;
