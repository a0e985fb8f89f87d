-- Projects, environments with their clocks and leases, tombstones.

CREATE TABLE projects (
    id         TEXT PRIMARY KEY,
    owner      TEXT NOT NULL,
    title      TEXT NOT NULL,
    template   TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX projects_by_owner ON projects (owner, created_at, id);

-- The record is one JSON document, written only by a commit that names its generation.
-- What a query selects on stands beside it.
CREATE TABLE environments (
    id             TEXT PRIMARY KEY,
    project        TEXT NOT NULL REFERENCES projects (id),
    generation     INTEGER NOT NULL,
    takes_touches  INTEGER NOT NULL,
    due_at         INTEGER,
    record         TEXT NOT NULL,
    activity_seq   INTEGER NOT NULL DEFAULT 0,
    agent_at       INTEGER,
    app_at         INTEGER,
    extended_until INTEGER,
    last_activity  INTEGER NOT NULL
) STRICT;
CREATE INDEX environments_by_project ON environments (project);
CREATE INDEX environments_by_due ON environments (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE leases (
    env        TEXT NOT NULL REFERENCES environments (id) ON DELETE CASCADE,
    holder     TEXT NOT NULL,
    surface    TEXT NOT NULL,
    kind       TEXT NOT NULL,
    count      INTEGER NOT NULL,
    since      INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (env, holder, surface, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX leases_by_holder ON leases (holder);

CREATE TABLE tombstones (
    project    TEXT PRIMARY KEY,
    owner      TEXT NOT NULL,
    deleted_at INTEGER NOT NULL,
    keep_until INTEGER NOT NULL,
    body       TEXT NOT NULL
) STRICT;
CREATE INDEX tombstones_by_owner ON tombstones (owner, deleted_at);
CREATE INDEX tombstones_by_keep ON tombstones (keep_until);

-- The environments that a tombstone names, so that the reaper finds them by key.
CREATE TABLE tombstone_environments (
    env     TEXT PRIMARY KEY,
    project TEXT NOT NULL REFERENCES tombstones (project) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Where the platform's clock was pinned; one row.
CREATE TABLE clock_anchor (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    boot_id TEXT NOT NULL,
    boot_ms INTEGER NOT NULL,
    time_ms INTEGER NOT NULL
) STRICT;
