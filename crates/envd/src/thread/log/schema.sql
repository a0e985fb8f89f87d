-- Append-only: rows are added, and taken away only for deleted threads (`purge`).
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    thread BLOB,
    body TEXT NOT NULL
);
CREATE INDEX events_by_thread ON events (thread, seq);

-- Every prompt that was ever taken; outlives its thread.
CREATE TABLE prompts (
    client BLOB PRIMARY KEY,
    thread BLOB NOT NULL,
    seq INTEGER NOT NULL
) WITHOUT ROWID;

-- Where segments begin. `body` is the segment as it was at `through`, made when there is time;
-- what came later is applied when it is read.
CREATE TABLE segments (
    id INTEGER PRIMARY KEY,
    thread BLOB NOT NULL,
    number INTEGER NOT NULL,
    first INTEGER NOT NULL,
    through INTEGER NOT NULL DEFAULT 0,
    body TEXT,
    UNIQUE (thread, number)
);

-- The words of segments; `rowid` is the segment's id.
CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2');

-- The state of threads at the checkpoint, so that opening need not read the whole log.
CREATE TABLE threads (
    thread BLOB PRIMARY KEY,
    changed INTEGER NOT NULL,
    body TEXT NOT NULL
) WITHOUT ROWID;

-- `checkpoint`: what `threads` and `body` are at. `reducer`: by which rules they were derived.
CREATE TABLE host (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    checkpoint INTEGER NOT NULL,
    reducer INTEGER NOT NULL,
    body TEXT NOT NULL
);

-- Deleted threads whose events below a number are still to be removed.
CREATE TABLE purge (
    thread BLOB PRIMARY KEY,
    below INTEGER NOT NULL
) WITHOUT ROWID;
