//! The client runtime at a real platform: its environments come with the platform's list, through
//! its gateway, and sleep.

mod crash;
mod desk;
mod several;
mod sleep;
