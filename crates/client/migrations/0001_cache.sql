-- What a host's list was, with the position that it is at, as one value.
CREATE TABLE shells (
    host TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID, STRICT;

-- What a thread was, with the position that it is at, as one value.
CREATE TABLE threads (
    host TEXT NOT NULL,
    thread TEXT NOT NULL,
    value BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    PRIMARY KEY (host, thread)
) STRICT;
CREATE INDEX threads_by_use ON threads (used_at);

-- What belongs to a host and is nobody else's copy: the entry itself, drafts, prompts on their way.
CREATE TABLE owned (
    host TEXT NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (host, key)
) WITHOUT ROWID, STRICT;

-- Hosts whose data are still to be deleted.
CREATE TABLE doomed (
    host TEXT PRIMARY KEY
) WITHOUT ROWID, STRICT;
