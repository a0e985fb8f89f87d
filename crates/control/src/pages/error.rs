//! Error pages.

use axum::response::Response;
use maud::html;
use wakeful_wire::{Code, Problem, hosts::Hosts};

use super::layout::{Page, Place};
use crate::api::PageCsp;

/// The page for a refusal. Its status is set by whoever sends it.
pub(crate) fn refused(hosts: &Hosts, problem: &Problem) -> Response {
    let usual = [
        (Code::NotFound, "There is nothing here, or it is not yours to see."),
        (Code::MethodNotAllowed, "This address cannot be used that way."),
        (Code::Internal, "Something went wrong here. It has been noted; try again in a while."),
        (Code::Unauthenticated, "Your session has ended. Sign in and try again."),
    ];
    let usual = usual.iter().find(|(code, _)| *code == problem.code);
    let usual = usual.map_or("That did not work.", |(_, sentence)| *sentence);
    let sentence = problem.detail.as_deref().unwrap_or(usual);
    let signed_out = matches!(problem.code, Code::Unauthenticated | Code::BadCredentials);
    let page = Page {
        title: &problem.title,
        user: None,
        place: Place::Nowhere,
        csp: PageCsp::Main,
        live: false,
    };
    page.answer(&html! {
        section .card.narrow.notice-page {
            p .code aria-hidden="true" { (problem.status) }
            h1 { (problem.title) }
            p { (sentence) }
            @if problem.retry {
                p .muted { "Trying again may work." }
            }
            p .actions {
                @if signed_out {
                    a .button.primary href="/login" { "Sign in" }
                } @else {
                    a .button.primary href=(hosts.main_url("/")) { "To the dashboard" }
                }
            }
        }
    })
}
