//! The threads that are looked at: one stream each, kept for a while.
