//! Older settled threads: exact counts, pages, and the frontier over all hosts.
