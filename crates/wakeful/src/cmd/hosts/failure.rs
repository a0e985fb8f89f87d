//! Why a command about one host did not work.

use serde_json::{Value, json};
use wakeful_link::{Failure, FailureReason};

use crate::output::printable;

/// Why a command about one host did not work.
#[derive(Debug, thiserror::Error)]
#[error("{}", text(.name, .paired, .failure))]
pub(in crate::cmd) struct HostFailure {
    /// What the host is called.
    pub(in crate::cmd) name: String,
    /// Whether it is a paired host.
    pub(in crate::cmd) paired: bool,
    /// Why.
    pub(in crate::cmd) failure: Failure,
}

impl HostFailure {
    /// What programs read.
    pub(in crate::cmd) fn json(&self) -> Value {
        let mut value = json!({
            "title": "Failed",
            "detail": self.to_string(),
            "reason": self.failure.reason.as_str(),
        });
        if let Some(phase) = self.failure.phase {
            value["phase"] = phase.as_str().into();
        }
        value
    }
}

fn text(name: &str, paired: &bool, failure: &Failure) -> String {
    let name = printable(name);
    let detail = printable(failure.detail.trim_end_matches('.'));
    match (failure.reason, paired) {
        (FailureReason::Authentication, true) => format!(
            "{name} does not know this machine any more: pair with it again (`wakeful pair`)"
        ),
        (FailureReason::Authentication, false) => {
            format!("{name}: {detail}: sign in again (`wakeful login`)")
        }
        _ => format!("{name}: {detail} ({})", failure.reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_its_host_and_what_helps() {
        let said = |paired, reason, detail: &str| {
            let failure = Failure::new(reason, detail);
            HostFailure { name: "lab".to_owned(), paired, failure }.to_string()
        };
        let table = [
            (true, FailureReason::Authentication, "Gone.", "pair with it again"),
            (false, FailureReason::Authentication, "Gone.", "sign in again"),
            (true, FailureReason::Network, "No route\u{1b}.", "lab: No route\u{fffd} (network)"),
        ];
        for (paired, reason, detail, expected) in table {
            let text = said(paired, reason, detail);
            assert!(text.contains(expected), "{text}");
        }
        let failure = Failure::new(FailureReason::Permission, "Not yours.");
        let json = HostFailure { name: "lab".to_owned(), paired: true, failure }.json();
        assert_eq!(json["reason"], "permission");
    }
}
