//! Paths of files below a workspace (`spec/server-runtime.md`, 5.1).

use std::fmt;

/// Where uploads land, below the workspace.
pub const UPLOADS: &str = "user_uploaded_files";
/// The most bytes of a segment, as file systems have it.
pub const SEGMENT_MAX: usize = 255;
/// The most bytes of a path.
pub const PATH_MAX: usize = 4_000;

/// The directory at the top of every workspace where its environment server keeps its log.
pub(super) const RESERVED: &str = ".wakeful";

/// What files that are being written are called, where the file system cannot do without a name.
/// They are never listed.
pub(super) const TEMPORARY: &str = ".wakeful-incoming-";

/// Why a text is not a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// Nothing is named.
    #[error("is empty")]
    Empty,
    /// It holds a zero byte.
    #[error("holds a zero byte")]
    ZeroByte,
    /// It begins at the root.
    #[error("is absolute")]
    Absolute,
    /// It holds `..`, also once backslashes are read as slashes.
    #[error("holds `..`")]
    Upwards,
    /// A segment or the whole is too long.
    #[error("is too long")]
    TooLong,
    /// A name that the platform itself uses.
    #[error("is the platform's own")]
    Reserved,
}

/// A path below a workspace: no `.`, no `..`, no empty segment, no zero byte.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RelativePath(String);

impl RelativePath {
    /// The workspace itself.
    #[must_use]
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// Reads a path. Segments that are empty or `.` are dropped; a slash at the end is too.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, PathFault> {
        if text.contains('\0') {
            return Err(PathFault::ZeroByte);
        }
        if text.starts_with(['/', '\\']) {
            return Err(PathFault::Absolute);
        }
        // On some systems a backslash separates: it must not hide a step upwards from them.
        if text.split(['/', '\\']).any(|segment| segment == "..") {
            return Err(PathFault::Upwards);
        }
        let mut path = String::with_capacity(text.len());
        for segment in text.split('/').filter(|segment| !matches!(*segment, "" | ".")) {
            if segment.len() > SEGMENT_MAX {
                return Err(PathFault::TooLong);
            }
            if segment.starts_with(TEMPORARY) {
                return Err(PathFault::Reserved);
            }
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(segment);
        }
        if path.is_empty() {
            return Err(PathFault::Empty);
        }
        if path.len() > PATH_MAX {
            return Err(PathFault::TooLong);
        }
        Ok(Self(path))
    }

    /// As [`Self::parse`], but nothing means the workspace itself.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse_or_root(text: &str) -> Result<Self, PathFault> {
        match Self::parse(text) {
            Err(PathFault::Empty) => Ok(Self::root()),
            other => other,
        }
    }

    /// This path below the directory of uploads.
    #[must_use]
    pub fn below_uploads(&self) -> Self {
        Self(format!("{UPLOADS}/{}", self.0))
    }

    /// Whether it is the workspace itself.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is the environment server's directory, or something in it.
    pub(super) fn is_reserved(&self) -> bool {
        self.0.split('/').next() == Some(RESERVED)
    }

    /// The path as text, without a slash at either end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last segment; `None` for the workspace itself.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.split_last().map(|(_, name)| name)
    }

    /// The directory that it stands in (empty for the workspace) and its name there.
    pub(super) fn split_last(&self) -> Option<(&str, &str)> {
        if self.is_root() {
            return None;
        }
        Some(self.0.rsplit_once('/').unwrap_or(("", &self.0)))
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_into_one_form() {
        let table = [
            ("a", "a"),
            ("a/b.txt", "a/b.txt"),
            ("a//b", "a/b"),
            ("./a/./b/", "a/b"),
            (".env", ".env"),
            ("...", "..."),
            ("a\\b", "a\\b"),
            ("C:x", "C:x"),
            ("ü/✓", "ü/✓"),
        ];
        for (text, path) in table {
            assert_eq!(RelativePath::parse(text).unwrap().as_str(), path, "{text}");
        }
    }

    #[test]
    fn the_environment_servers_directory_is_known_in_every_spelling() {
        assert_eq!(RESERVED, wakeful_envd::thread::log::DIRECTORY);
        for (text, reserved) in [
            (".wakeful", true),
            (".wakeful/", true),
            ("./.wakeful", true),
            (".//.wakeful//./threads.db", true),
            (".wakeful2", false),
            (".Wakeful", false),
            ("a/.wakeful/threads.db", false),
            (".wakeful\\x", false),
        ] {
            assert_eq!(RelativePath::parse(text).unwrap().is_reserved(), reserved, "{text}");
        }
        assert!(!RelativePath::parse(".wakeful/x").unwrap().below_uploads().is_reserved());
        assert!(!RelativePath::root().is_reserved());
        assert_eq!(RelativePath::parse("a/../.wakeful"), Err(PathFault::Upwards));
    }

    #[test]
    fn what_is_not_a_path_below_a_workspace_is_refused() {
        let long = "x".repeat(256);
        let deep = "x/".repeat(2_001);
        let table = [
            ("", PathFault::Empty),
            (".", PathFault::Empty),
            ("./", PathFault::Empty),
            ("/", PathFault::Absolute),
            ("/etc/passwd", PathFault::Absolute),
            ("\\x", PathFault::Absolute),
            ("..", PathFault::Upwards),
            ("../../x", PathFault::Upwards),
            ("a/../../x", PathFault::Upwards),
            ("a/..", PathFault::Upwards),
            ("..\\x", PathFault::Upwards),
            ("a\\..\\x", PathFault::Upwards),
            ("a\0b", PathFault::ZeroByte),
            (&long, PathFault::TooLong),
            (&deep, PathFault::TooLong),
            ("a/.wakeful-incoming-1", PathFault::Reserved),
        ];
        for (text, fault) in table {
            assert_eq!(RelativePath::parse(text), Err(fault), "{text}");
        }
        assert!(RelativePath::parse_or_root("/").is_err());
        assert!(RelativePath::parse_or_root("").unwrap().is_root());
    }
}
