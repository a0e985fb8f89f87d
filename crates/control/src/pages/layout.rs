//! What every page has in common.

use axum::response::{IntoResponse, Response};
use http::header;
use maud::{DOCTYPE, Markup, html};
use wakeful_wire::UserName;

use super::assets;
use crate::api::PageCsp;

/// Where the visitor is, for the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The projects and whatever belongs to one.
    Projects,
    /// The account.
    Account,
    /// Elsewhere.
    Nowhere,
}

/// A page.
pub(super) struct Page<'a> {
    /// Its title.
    pub(super) title: &'a str,
    /// Whoever is signed in.
    pub(super) user: Option<&'a UserName>,
    /// Where it stands.
    pub(super) place: Place,
    /// Where its forms may lead.
    pub(super) csp: PageCsp,
    /// Whether phases on it change by themselves.
    pub(super) live: bool,
}

impl<'a> Page<'a> {
    /// A page of somebody who is signed in.
    pub(super) const fn of(user: &'a UserName, place: Place, title: &'a str) -> Self {
        Self { title, user: Some(user), place, csp: PageCsp::Main, live: false }
    }

    /// With phases that change by themselves where the script runs.
    pub(super) const fn live(mut self) -> Self {
        self.live = true;
        self
    }

    /// The page as an answer.
    pub(super) fn answer(self, main: &Markup) -> Response {
        let csp = self.csp;
        let text = self.render(main).into_string();
        let mut response =
            ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response();
        response.extensions_mut().insert(csp);
        response
    }

    fn render(&self, main: &Markup) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " · Wakeful" }
                    link rel="icon" type="image/svg+xml" href=(assets::icon());
                    link rel="stylesheet" href=(assets::stylesheet());
                    @if self.live {
                        script src=(assets::script()) defer {}
                    }
                }
                body {
                    a .skip href="#main" { "Skip to the content" }
                    (self.header())
                    main #main tabindex="-1" { (main) }
                }
            }
        }
    }

    fn header(&self) -> Markup {
        let current = |place| (self.place == place).then_some("page");
        html! {
            header .bar {
                a .brand href="/" {
                    span .mark aria-hidden="true" {}
                    span { "Wakeful" }
                }
                @if let Some(user) = self.user {
                    nav aria-label="Main" {
                        a href="/projects" aria-current=[current(Place::Projects)] { "Projects" }
                        a href="/account" aria-current=[current(Place::Account)] { (user) }
                        form method="post" action="/logout" {
                            button .quiet type="submit" { "Sign out" }
                        }
                    }
                } @else {
                    nav aria-label="Main" {
                        a href="/login" { "Sign in" }
                    }
                }
            }
        }
    }
}
