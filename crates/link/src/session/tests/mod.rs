mod calls;
mod opening;
pub(crate) mod sample;
mod signs;
