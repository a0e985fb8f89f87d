//! The parts of an environment's page.

use maud::{Markup, html};
use wakeful_wire::{
    Phase, Timestamp,
    api::{AwakeBecause, Environment, Explain, FailureView, Project},
    gate::LeaseKind,
    sandbox::IsolationInForce,
};

use crate::{
    pages::{
        parts::{action, open_link, phase},
        times::{ago, span},
    },
    variables::VariableView,
};

/// What can be done in a phase.
const fn possible(phase: Phase) -> (bool, bool, bool) {
    // Wake, suspend, restart.
    match phase {
        Phase::Suspended | Phase::Frozen | Phase::Suspending => (true, false, false),
        Phase::Starting => (false, true, true),
        Phase::Ready => (false, true, true),
        Phase::Failed => (true, false, false),
        Phase::Disabled | Phase::Publishing | Phase::Deleted => (false, false, false),
    }
}

pub(super) fn head(project: &Project, environment: &Environment, now: Timestamp) -> Markup {
    let (wake, suspend, restart) = possible(environment.phase);
    let at = format!("/environments/{}", environment.id);
    html! {
        div .head #head data-live {
            div {
                h1 { (project.title) }
                p .status {
                    (phase(environment))
                    span .muted {
                        " since " (ago(environment.since, now)) " · "
                        span .tag { (project.template) }
                    }
                }
            }
            div .actions {
                @if wake { (action(&format!("{at}/wake"), "Wake", "primary")) }
                @if suspend { (action(&format!("{at}/suspend"), "Put to sleep", "")) }
                @if restart { (action(&format!("{at}/restart"), "Restart", "")) }
            }
            @if let Some(failure) = &environment.failure { (fault(failure)) }
        }
    }
}

fn fault(failure: &FailureView) -> Markup {
    let plural = if failure.attempts == 1 { "" } else { "s" };
    html! {
        div .alert.full role="alert" {
            strong { "It did not start: " } (failure.reason)
            p .muted {
                "Tried " (failure.attempts) " time" (plural) ". "
                @if failure.permanent {
                    "It stays so until something is changed."
                } @else if let Some(ms) = failure.retry_in_ms {
                    "It is tried again in " (span(std::time::Duration::from_millis(ms))) "."
                }
            }
        }
    }
}

pub(super) fn why(environment: &Environment, explain: &Explain) -> Markup {
    let awake = matches!(environment.phase, Phase::Ready | Phase::Starting);
    html! {
        section .card aria-labelledby="why" {
            div #why-now data-live {
                h2 #why { (why_title(environment.phase)) }
                p .sentence { (explain.sentence) }
                @if !explain.awake_because.is_empty() {
                    ul .reasons {
                        @for reason in &explain.awake_because { li { (because(reason)) } }
                    }
                }
                @if let Some(woken) = &environment.woken {
                    p .muted { "Last woken by " (woken.by) "." }
                }
                @if awake { (extend_form(environment)) }
            }
        }
    }
}

const fn why_title(phase: Phase) -> &'static str {
    match phase {
        Phase::Ready | Phase::Starting => "Why it is awake",
        Phase::Suspended | Phase::Suspending | Phase::Frozen => "Why it sleeps",
        Phase::Failed | Phase::Disabled | Phase::Publishing | Phase::Deleted => {
            "Why it does not run"
        }
    }
}

fn extend_form(environment: &Environment) -> Markup {
    html! {
        form method="post" action={ "/environments/" (environment.id) "/extend" } .row {
            div .field {
                label for="minutes" { "Keep it awake for" }
                select #minutes name="minutes" {
                    option value="30" { "30 minutes" }
                    option value="60" selected { "1 hour" }
                    option value="240" { "4 hours" }
                    option value="720" { "12 hours" }
                }
            }
            button type="submit" { "Extend" }
        }
    }
}

fn because(reason: &AwakeBecause) -> Markup {
    match reason {
        AwakeBecause::Clock { surface, expires_in_ms } => html! {
            "The " strong { (surface) } " clock runs for "
            (span(std::time::Duration::from_millis(*expires_in_ms))) " more."
        },
        AwakeBecause::Lease { what: LeaseKind::Turn, count, .. } => html! {
            strong { (count) " running turn" @if *count != 1 { "s" } }
            " of an agent"
        },
        AwakeBecause::Lease { surface, what, count, .. } => html! {
            strong { (surface) } ": " (count) " open " (what.as_str())
            @if *count != 1 { "s" }
        },
    }
}

pub(super) fn surfaces(environment: &Environment) -> Markup {
    html! {
        section .card aria-labelledby="surfaces" {
            h2 #surfaces { "Ways in" }
            @if environment.surfaces.is_empty() {
                p .empty { "Its template has no surfaces." }
            }
            ul .list #surface-list data-live {
                @for surface in &environment.surfaces {
                    li {
                        div .grow {
                            strong { (surface.name) } " "
                            @if surface.ready {
                                span .tag.good { "answers" }
                            } @else if environment.phase == Phase::Ready {
                                span .tag { "not yet" }
                            }
                            @if let Some(reason) = &surface.reason {
                                p .fault { (reason) }
                            }
                            @if let Some(path) = &surface.path_url {
                                p .muted.address { "For programs: " code { (path) } }
                            }
                        }
                        (open_link(surface))
                    }
                }
            }
            p .muted { "A visit wakes it." }
        }
    }
}

pub(super) fn variables(
    environment: &Environment,
    variables: &[VariableView],
    now: Timestamp,
) -> Markup {
    let at = format!("/environments/{}/variables", environment.id);
    html! {
        section .card aria-labelledby="variables" {
            h2 #variables { "Variables and secrets" }
            p .muted {
                "Its processes get them when it starts the next time. A secret is never shown again."
            }
            @if !variables.is_empty() {
                div .scroll {
                    table {
                        thead {
                            tr {
                                th scope="col" { "Name" }
                                th scope="col" { "Value" }
                                th .minor scope="col" { "Set" }
                                th scope="col" { span .visually-hidden { "Actions" } }
                            }
                        }
                        tbody {
                            @for variable in variables {
                                tr {
                                    th scope="row" { code { (variable.name) } }
                                    td .value {
                                        code { (variable.shown) }
                                        @if variable.secret { " " span .tag { "secret" } }
                                    }
                                    td .minor { (ago(variable.updated_at, now)) }
                                    td .end {
                                        form method="post" action={
                                            (at) "/" (variable.name) "/remove"
                                        } .inline {
                                            button .small type="submit"
                                                aria-label={ "Remove " (variable.name) } {
                                                "Remove"
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            form method="post" action=(at) .stack {
                div .pair {
                    div .field {
                        label for="variable-name" { "Name" }
                        input #variable-name name="name" required autocomplete="off"
                            autocapitalize="characters" spellcheck="false" maxlength="128"
                            pattern="[A-Za-z_][A-Za-z0-9_]*" placeholder="API_KEY";
                    }
                    div .field {
                        label for="variable-value" { "Value" }
                        textarea #variable-value name="value" rows="1" autocomplete="off"
                            spellcheck="false" {}
                    }
                }
                div .row {
                    label .check.grow {
                        input type="checkbox" name="secret" value="yes" checked;
                        "It is a secret"
                    }
                    button type="submit" { "Set" }
                }
            }
        }
    }
}

pub(super) fn isolation(isolation: Option<&IsolationInForce>) -> Markup {
    html! {
        section .card aria-labelledby="isolation" {
            h2 #isolation { "Isolation" }
            div #isolation-now data-live {
                @match isolation {
                    None => p .muted { "It is applied, and shown here, while it is awake." },
                    Some(isolation) => {
                        @let rung = if isolation.rung.is_empty() { "none" } else { &isolation.rung };
                        p { "In force: " strong { (rung) } }
                        dl .facts {
                            @for (part, now) in &isolation.parts {
                                dt { (part) }
                                dd { (now) }
                            }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn danger(project: &Project) -> Markup {
    html! {
        section .card aria-labelledby="delete" {
            h2 #delete { "Delete" }
            p .muted {
                "It stops at once. Its files are kept for a while, and it can be restored until then."
            }
            details {
                summary { "Delete this project…" }
                (action(
                    &format!("/projects/{}/delete", project.id),
                    &format!("Delete “{}”", project.title),
                    "danger",
                ))
            }
        }
    }
}
