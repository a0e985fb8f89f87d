//! The server-rendered pages of the main host.
//!
//! Every page works without script: its buttons are forms. One small script keeps phases live
//! where it runs. A page asks the same functions as the API and refuses with the same refusals.

mod account;
mod assets;
mod deleted;
mod environment;
mod error;
mod files;
mod layout;
mod parts;
mod projects;
pub(crate) mod sign;
mod times;

pub(crate) use error::refused;

use axum::Router;

use crate::api::AppState;

/// The routes of every page.
pub(crate) fn routes() -> Router<AppState> {
    Router::new()
        .merge(assets::routes())
        .merge(sign::routes())
        .merge(account::routes())
        .merge(projects::routes())
        .merge(environment::routes())
        .merge(files::routes())
        .merge(deleted::routes())
}
