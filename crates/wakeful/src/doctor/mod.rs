//! `wakeful doctor`: what of this machine and this configuration works, and what does not.

pub mod isolation;

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
};

use serde::Serialize;
use wakeful_wire::{hosts::PathOrigin, sandbox::IsolationInForce};

use crate::{
    config::{Config, IsolationMode},
    output,
};

/// How good a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Works, but somebody should know.
    Note,
    /// Does not work.
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub what: String,
    /// How good it is.
    pub verdict: Verdict,
    /// What was found, and what to do.
    pub detail: String,
}

impl Finding {
    fn new(what: impl Into<String>, verdict: Verdict, detail: impl Into<String>) -> Self {
        Self { what: what.into(), verdict, detail: detail.into() }
    }

    fn good(what: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(what, Verdict::Good, detail)
    }

    fn note(what: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(what, Verdict::Note, detail)
    }

    /// Something that does not work.
    #[must_use]
    pub fn bad(what: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(what, Verdict::Bad, detail)
    }

    /// Whether it does not work.
    #[must_use]
    pub fn is_bad(&self) -> bool {
        self.verdict == Verdict::Bad
    }
}

/// Looks at everything but isolation, which [`isolation::probe`] finds out. `path` is the `PATH` in
/// which templates' programs are looked for.
#[must_use]
pub fn examine(config: &Config, path: &str) -> Vec<Finding> {
    let mut findings = vec![Finding::good("configuration", "understood")];
    findings.extend(config.warnings.iter().map(|w| Finding::note("configuration", w.clone())));
    findings.push(data(&config.data));
    findings.extend(config.listen.iter().map(|address| listen(*address, config)));
    findings.push(origins(config));
    for (name, template) in &config.templates {
        let what = format!("template {name}");
        findings.push(match template.missing(|program| find(program, path).is_some()) {
            Some(missing) if *name == config.default_template => Finding::bad(what, missing),
            Some(missing) => Finding::note(what, missing),
            None => Finding::good(what, "can run"),
        });
    }
    findings
}

/// The findings for people.
#[must_use]
pub fn text(findings: &[Finding]) -> String {
    let rows: Vec<[String; 3]> = findings
        .iter()
        .map(|finding| {
            let verdict = match finding.verdict {
                Verdict::Good => "ok",
                Verdict::Note => "note",
                Verdict::Bad => "BAD",
            };
            [verdict.to_owned(), finding.what.clone(), finding.detail.clone()]
        })
        .collect();
    output::table(["", "WHAT", "FOUND"], &rows)
}

/// Where a program is, in a list of directories as `PATH` holds it.
#[must_use]
pub fn find(program: &str, path: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let runs = |file: &Path| {
        fs::metadata(file)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.starts_with('/') {
        return Some(PathBuf::from(program)).filter(|file| runs(file));
    }
    path.split(':')
        .filter(|directory| !directory.is_empty())
        .map(|directory| Path::new(directory).join(program))
        .find(|file| runs(file))
}

/// Whether the data directory, or the nearest directory above that exists, can be written.
fn data(directory: &Path) -> Finding {
    let what = format!("data {}", directory.display());
    let Some(existing) = directory.ancestors().find(|directory| directory.exists()) else {
        return Finding::bad(what, "no directory above it exists");
    };
    let writable = rustix::fs::access(existing, rustix::fs::Access::WRITE_OK).is_ok();
    match (existing == directory, writable) {
        (true, true) => Finding::good(what, "can be written"),
        (false, true) => Finding::good(what, "will be made"),
        (_, false) => Finding::bad(what, format!("{} cannot be written", existing.display())),
    }
}

fn listen(address: std::net::SocketAddr, config: &Config) -> Finding {
    let what = format!("listen {address}");
    match TcpListener::bind(address) {
        Ok(_) => Finding::good(what, "free"),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            Finding::note(what, "in use: Wakeful is running, or another program")
        }
        Err(error) if address.is_ipv6() && config.is_default("listen") => {
            Finding::note(what, format!("left out: {error}"))
        }
        Err(error) => Finding::bad(what, error.to_string()),
    }
}

fn origins(config: &Config) -> Finding {
    match config.path_origin {
        PathOrigin::Separate => {
            Finding::good("origins", "nothing from a sandbox runs in the dashboard's origin")
        }
        PathOrigin::Shared => Finding::note(
            "origins",
            "path_origin = \"shared\": pages of environments run in the dashboard's origin and can \
             act for whoever is signed in there; only for environments that you trust",
        ),
    }
}

/// What isolation is in force, and whether that is what was asked for.
#[must_use]
pub fn isolated(config: &Config, probe: &anyhow::Result<IsolationInForce>) -> Vec<Finding> {
    let what = "isolation";
    let in_force = match probe {
        Ok(in_force) => in_force,
        Err(error) => return vec![Finding::bad(what, format!("{error:#}"))],
    };
    let mut findings = vec![match (config.isolation.mode, in_force.rung.as_str()) {
        (IsolationMode::None, _) => Finding::note(
            what,
            "none, as configured: programs in environments can do what Wakeful can do",
        ),
        (IsolationMode::Landlock, "none") => Finding::bad(
            what,
            "none works here, but isolation.mode = \"landlock\" asks for it: nothing will start",
        ),
        (IsolationMode::Auto, "none") => Finding::note(
            what,
            "none works here: programs in environments can do what Wakeful can do",
        ),
        (IsolationMode::Auto | IsolationMode::Landlock, rung) => Finding::good(what, rung),
    }];
    for (part, state) in &in_force.parts {
        let missing = ["not ", "off "].iter().any(|word| state.starts_with(word));
        let verdict = if missing { Verdict::Note } else { Verdict::Good };
        findings.push(Finding::new(format!("isolation {part}"), verdict, state.clone()));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_in_path_or_at_its_place_if_it_can_run() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tool");
        fs::write(&file, "").unwrap();
        let path = format!("/nowhere::{}", directory.path().display());
        assert_eq!(find("tool", &path), None);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("tool", &path), Some(file.clone()));
        assert_eq!(find(file.to_str().unwrap(), ""), Some(file));
        assert_eq!(find("other", &path), None);
    }

    #[test]
    fn a_rung_that_was_asked_for_and_does_not_work_is_bad() {
        let table = [
            ("auto", "landlock", Verdict::Good),
            ("auto", "none", Verdict::Note),
            ("landlock", "landlock", Verdict::Good),
            ("landlock", "none", Verdict::Bad),
            ("none", "none", Verdict::Note),
        ];
        for (mode, rung, expected) in table {
            let text = format!("isolation.mode = '{mode}'");
            let file = Some(("w".to_owned(), text));
            let layers = crate::config::Layers { file, ..Default::default() };
            let config = Config::resolve(&layers).unwrap();
            let in_force = IsolationInForce { rung: rung.to_owned(), parts: Vec::new() };
            let findings = isolated(&config, &Ok(in_force));
            assert_eq!(findings[0].verdict, expected, "{mode} {rung}");
        }
    }

    #[test]
    fn a_missing_program_of_the_default_template_is_bad_and_of_another_a_note() {
        let layers = |template: &str| crate::config::Layers {
            file: Some(("w".to_owned(), format!("default_template = '{template}'"))),
            directory: std::env::temp_dir(),
            ..Default::default()
        };
        let verdict = |default: &str, template: &str| {
            let config = Config::resolve(&layers(default)).unwrap();
            let what = format!("template {template}");
            let findings = examine(&config, "/nowhere");
            findings.into_iter().find(|finding| finding.what == what).unwrap()
        };
        assert_eq!(verdict("demo", "demo").verdict, Verdict::Good);
        let missing = verdict("demo", "opencode");
        assert_eq!(missing.verdict, Verdict::Note);
        assert!(missing.detail.contains("npm install"), "{missing:?}");
        assert_eq!(verdict("opencode", "opencode").verdict, Verdict::Bad);
    }
}
