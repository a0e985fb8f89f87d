//! Small parts that several pages show.

use maud::{Markup, html};
use wakeful_wire::{
    Phase,
    api::{Environment, SurfaceView},
};

use crate::api::Refusal;

/// What was wrong, above a form.
pub(super) fn alert(refusal: Option<&Refusal>) -> Markup {
    html! {
        @if let Some(refusal) = refusal {
            p .alert role="alert" #fault { (refusal.sentence()) }
        }
    }
}

/// A phase in words.
pub(super) const fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Suspended => "Asleep",
        Phase::Starting => "Waking",
        Phase::Ready => "Awake",
        Phase::Frozen => "Paused",
        Phase::Suspending => "Going to sleep",
        Phase::Failed => "Cannot start",
        Phase::Disabled => "Switched off",
        Phase::Publishing => "Publishing",
        Phase::Deleted => "Deleted",
    }
}

/// The phase of an environment. The script looks at what it says to tell whether it is still so.
pub(super) fn phase(environment: &Environment) -> Markup {
    html! {
        span .phase data-env=(environment.id) data-phase=(environment.phase)
            data-generation=(environment.generation) {
            (phase_word(environment.phase))
        }
    }
}

/// A link that opens a surface in a tab of its own.
pub(super) fn open_link(surface: &SurfaceView) -> Markup {
    html! {
        a .button.small href=(surface.url) target="_blank" rel="noopener" {
            "Open " (surface.name)
            span .visually-hidden { " in a new tab" }
        }
    }
}

/// A button that is a form of its own.
pub(super) fn action(to: &str, label: &str, class: &str) -> Markup {
    html! {
        form method="post" action=(to) .inline {
            button class=(class) type="submit" { (label) }
        }
    }
}
