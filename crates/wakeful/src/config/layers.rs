//! The layers that a configuration is resolved from, as plain data.

use std::{collections::BTreeMap, fmt, path::PathBuf};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// The configuration file.
    File {
        /// The file's name as it was given.
        path: String,
        /// The line, from 1.
        line: usize,
    },
    /// A variable of the environment.
    Variable(String),
    /// A flag of the command.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// A value given by a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagValue {
    /// The flag as it is written: `--listen`, `--set idle.app`.
    pub flag: String,
    /// The setting's key.
    pub key: String,
    /// The value. A list holds one entry per use of the flag.
    pub values: Vec<String>,
}

/// The layers, highest first.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// What the flags say.
    pub flags: Vec<FlagValue>,
    /// The process environment. Only names that begin with `WAKEFUL_` are looked at.
    pub variables: BTreeMap<String, String>,
    /// The configuration file: its name for messages, and its text.
    pub file: Option<(String, String)>,
    /// The directory that relative paths start from. Absolute.
    pub directory: PathBuf,
    /// How many processors this machine offers: the default of `cores`.
    pub machine_cores: usize,
}
