//! Rows that the list leaves out, read on demand.
