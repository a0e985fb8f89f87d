//! What is wrong with a configuration.

use std::fmt;

/// One fault: where it stands, in what, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where it was written: `wakeful.toml:12`, `WAKEFUL_IDLE_APP`, `--listen`.
    pub place: String,
    /// The key's whole path, such as `templates.demo.surfaces.app.ready`. Empty for the file.
    pub key: String,
    /// What is wrong and how it is written right.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            write!(f, "{}: {}", self.place, self.message)
        } else {
            write!(f, "{}: `{}` {}", self.place, self.key, self.message)
        }
    }
}

/// Every fault of a configuration, so that one run shows all of them. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The faults, in the order in which they were found.
    pub faults: Vec<Fault>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration cannot be used")?;
        for fault in &self.faults {
            write!(f, "\n  {fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// Collects faults while going on, so that one run shows all of them.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    /// Adds a fault.
    pub(crate) fn add(
        &mut self,
        place: impl Into<String>,
        key: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.0.push(Fault { place: place.into(), key: key.into(), message: message.into() });
    }

    /// Adds what another has collected.
    pub(crate) fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Whether none was found.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What was found, as an error if it was anything.
    pub(crate) fn finish(self) -> Result<(), ConfigError> {
        if self.0.is_empty() { Ok(()) } else { Err(ConfigError { faults: self.0 }) }
    }
}
