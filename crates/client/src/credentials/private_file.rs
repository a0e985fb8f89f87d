//! Files that only their owner may read.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
};

use anyhow::Context as _;

/// Writes a file anew, so that no reader ever sees half of it and nobody else any of it. Its
/// directory is made, for its owner alone, if there is none.
///
/// # Errors
/// It cannot be written.
pub fn write(file: &Path, contents: &[u8]) -> anyhow::Result<()> {
    let directory = file.parent().unwrap_or_else(|| Path::new("."));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let write = || -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let temporary = directory.join(format!(".{name}.{}", std::process::id()));
        let _ = fs::remove_file(&temporary);
        let mut new =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        new.write_all(contents)?;
        new.sync_all()?;
        fs::rename(&temporary, file)
    };
    write().with_context(|| format!("{} cannot be written", file.display()))
}

/// Reads a file; nothing if there is none.
///
/// # Errors
/// It cannot be read.
pub fn read(file: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    match fs::read(file) {
        Ok(contents) => Ok(Some(contents)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", file.display())),
    }
}
