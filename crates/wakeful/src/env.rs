//! The registry of environment variables, and the one place where the process environment is read.
//!
//! Settings have a variable each by rule ([`crate::config::setting`]); everything else is listed
//! here. From both the page `docs/environment.md` is made, and a test fails when it is stale.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use crate::config::setting::SETTINGS;

/// A variable that is no setting.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it does, in sentences.
    pub about: &'static str,
}

/// The configuration file.
pub const CONFIG: &str = "WAKEFUL_CONFIG";
/// The server that client commands speak to.
pub const URL: &str = "WAKEFUL_URL";
/// The token that client commands use.
pub const TOKEN: &str = "WAKEFUL_TOKEN";

/// Where client commands keep copies of lists and threads.
pub const CACHE: &str = "WAKEFUL_CACHE";
/// What [`CACHE`] says for no copies at all.
pub const NO_CACHE: &str = "none";

/// Where programs keep what can be had again.
const CACHE_HOME: &str = "XDG_CACHE_HOME";
/// Where programs keep their state for this user.
const STATE_HOME: &str = "XDG_STATE_HOME";

/// A short directory of this user's own.
pub const RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";

/// Variables that the commands read, beside the settings.
pub const COMMANDS: &[Variable] = &[
    Variable {
        name: CONFIG,
        about: "The configuration file; like `--config`. \
                Where neither is given, `wakeful.toml` in the working directory is read if it \
                exists.",
    },
    Variable {
        name: URL,
        about: "The server that client commands speak to, instead of the one signed in to last.",
    },
    Variable {
        name: TOKEN,
        about: "The token that client commands use, instead of the one that `wakeful login` \
                stored.",
    },
    Variable {
        name: CACHE,
        about: "The directory in which client commands keep copies of lists and threads, to show \
                them at once and to load only what changed; `none` keeps nothing. \
                Without it that is `$XDG_CACHE_HOME/wakeful`, else `$HOME/.cache/wakeful`. \
                Nothing is kept for a `WAKEFUL_TOKEN` that is not of the user who is logged in.",
    },
    Variable { name: CACHE_HOME, about: "See `WAKEFUL_CACHE`." },
    Variable {
        name: "XDG_CONFIG_HOME",
        about: "Where `wakeful login` stores its credentials: `$XDG_CONFIG_HOME/wakeful`, \
                else `$HOME/.config/wakeful`.",
    },
    Variable {
        name: STATE_HOME,
        about: "Where `wakeful envd` keeps who a host of its own is: `$XDG_STATE_HOME/wakeful`, \
                else `$HOME/.local/state/wakeful`.",
    },
    Variable {
        name: "HOME",
        about: "See `XDG_CONFIG_HOME`, `XDG_STATE_HOME` and `WAKEFUL_CACHE`.",
    },
    Variable {
        name: RUNTIME_DIR,
        about: "Where `wakeful up` keeps its sockets when the data directory's path is too long for \
                them.",
    },
    Variable { name: "NO_COLOR", about: "Set to anything, logs and tables have no colours." },
];

/// Variables that every program in a sandbox finds set.
pub const SANDBOX: &[Variable] = &[
    Variable {
        name: "PORT",
        about: "The port on `127.0.0.1` that the surface's command must serve.",
    },
    Variable { name: "HOME", about: "The workspace, which is also the working directory." },
    Variable { name: "WAKEFUL_BIN", about: "The path of the `wakeful` binary." },
    Variable { name: "WAKEFUL_ENVIRONMENT", about: "The environment's id." },
    Variable { name: "WAKEFUL_PROJECT", about: "Its project's id." },
    Variable {
        name: "WAKEFUL_BASIC_USER",
        about: "For surfaces with `auth = \"basic\"`: the user that the gateway signs in as.",
    },
    Variable {
        name: "WAKEFUL_BASIC_PASSWORD",
        about: "For surfaces with `auth = \"basic\"`: the environment's random password.",
    },
    Variable {
        name: "WAKEFUL_DASHBOARD_URL",
        about: "The dashboard's address, for a page that links back to it.",
    },
];

/// Every name that begins with `WAKEFUL_` and means something.
#[must_use]
pub fn names() -> BTreeSet<String> {
    let listed = COMMANDS.iter().chain(SANDBOX).map(|variable| variable.name.to_owned());
    let settings = SETTINGS.iter().map(crate::config::setting::Declaration::variable);
    listed.chain(settings).filter(|name| name.starts_with("WAKEFUL_")).collect()
}

/// A short directory of this user's own, where the system gives one.
#[must_use]
pub fn runtime_dir() -> Option<PathBuf> {
    std::env::var_os(RUNTIME_DIR).filter(|dir| !dir.is_empty()).map(Into::into)
}

/// The directory for what lasts of this user's programs, where there is a place for it.
#[must_use]
pub fn state_dir() -> Option<PathBuf> {
    let absolute = |name| {
        let value = std::env::var_os(name).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    let state =
        absolute(STATE_HOME).or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("wakeful"))
}

/// The directory for copies of what hosts have, where there is a place for it and they are wanted.
#[must_use]
pub fn cache_dir(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    let set = |name: &str| variables.get(name).filter(|value| !value.is_empty());
    match set(CACHE) {
        Some(named) if named == NO_CACHE => return None,
        Some(named) => return Some(PathBuf::from(named)),
        None => {}
    }
    let absolute = |name| set(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache =
        absolute(CACHE_HOME).or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("wakeful"))
}

/// The process environment as it is, to choose from what a sandbox inherits.
#[must_use]
pub fn inherited() -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    std::env::vars_os().collect()
}

/// The process environment at this moment. Names and values that are not UTF-8 are left out: no
/// variable that is read here can be one.
#[must_use]
pub fn snapshot() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_kept_where_the_variables_say_or_not_at_all() {
        let named = |pairs: &[(&str, &str)]| {
            let variables = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            cache_dir(&variables).map(|path| path.display().to_string())
        };
        let home = ("HOME", "/h");
        assert_eq!(named(&[home]).as_deref(), Some("/h/.cache/wakeful"));
        assert_eq!(named(&[home, (CACHE_HOME, "/x")]).as_deref(), Some("/x/wakeful"));
        assert_eq!(named(&[home, (CACHE_HOME, "x")]).as_deref(), Some("/h/.cache/wakeful"));
        assert_eq!(named(&[home, (CACHE, "here")]).as_deref(), Some("here"));
        assert_eq!(named(&[home, (CACHE, "")]).as_deref(), Some("/h/.cache/wakeful"));
        assert_eq!(named(&[home, (CACHE, NO_CACHE)]), None);
        assert_eq!(named(&[]), None);
    }
}
