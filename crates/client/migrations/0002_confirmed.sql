-- When the list was what the host had, in milliseconds of the wall clock; 0 where nobody noted it.
ALTER TABLE shells ADD COLUMN confirmed_at INTEGER NOT NULL DEFAULT 0;
