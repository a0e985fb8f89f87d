//! Stores: the database file and the record port on it.

pub mod database;
pub mod sqlite;

pub use database::Database;
pub use sqlite::SqliteStore;
