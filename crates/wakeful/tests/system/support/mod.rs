//! A platform to test, and the clients that visit it.

mod alone;
mod api;
mod browser;
mod http;
mod model;
mod platform;
mod processes;
mod socket;
mod waiting;

pub(crate) use alone::Alone;
pub(crate) use api::User;
pub(crate) use browser::Browser;
pub(crate) use http::{Answer, Ask, Exchange};
pub(crate) use model::Model;
pub(crate) use platform::{Platform, Setup};
pub(crate) use processes::{Process, kill, lives};
pub(crate) use socket::{Frame, Socket};
pub(crate) use waiting::{stays, until};
