mod failures;
mod following;
mod requests;

mod bench;
