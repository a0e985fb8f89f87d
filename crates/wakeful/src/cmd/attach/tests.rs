//! From what the link knows to what is shown, sent and said.

mod line;
mod pick;
mod program;
mod render;
mod screen;
mod session;
mod shown;
mod standing;
