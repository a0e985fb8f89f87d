-- Users, their tokens and sessions, and the variables of environments.
--
-- Of every secret that somebody else holds (tokens, cookies, tickets) only the SHA-256 is kept.
-- An id is the beginning of that hash: it finds the row, the whole hash is then compared.

CREATE TABLE users (
    name          TEXT PRIMARY KEY,
    -- A PHC string; NULL for a user who signs in by token alone.
    password_hash TEXT,
    created_at    INTEGER NOT NULL
) STRICT;

CREATE TABLE tokens (
    id         TEXT PRIMARY KEY,
    hash       BLOB NOT NULL,
    user       TEXT NOT NULL REFERENCES users (name) ON DELETE CASCADE,
    label      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    used_at    INTEGER
) STRICT;
CREATE INDEX tokens_by_user ON tokens (user, created_at);

CREATE TABLE sessions (
    id         TEXT PRIMARY KEY,
    hash       BLOB NOT NULL,
    user       TEXT NOT NULL REFERENCES users (name) ON DELETE CASCADE,
    browser    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_user ON sessions (user, created_at);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

-- Cookies of private surfaces' own hosts. They die with the session that they were given for.
CREATE TABLE surface_sessions (
    id         TEXT PRIMARY KEY,
    hash       BLOB NOT NULL,
    session    TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    host       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX surface_sessions_by_session ON surface_sessions (session, host, created_at);

-- Single-use tickets that a surface's own host exchanges for its cookie.
CREATE TABLE tickets (
    id         TEXT PRIMARY KEY,
    hash       BLOB NOT NULL,
    session    TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    host       TEXT NOT NULL,
    nonce_hash BLOB NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX tickets_by_session ON tickets (session);
CREATE INDEX tickets_by_expiry ON tickets (expires_at);

-- No reference to `environments`: a deleted project's variables are kept as long as its tombstone,
-- so that a restored one starts with them.
CREATE TABLE variables (
    env        TEXT NOT NULL,
    name       TEXT NOT NULL,
    value      TEXT NOT NULL,
    secret     INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (env, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE basic_passwords (
    env        TEXT PRIMARY KEY,
    password   TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
