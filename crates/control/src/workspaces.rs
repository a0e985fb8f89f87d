//! Workspaces as directories.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    time::SystemTime,
};

use async_trait::async_trait;
use wakeful_lifecycle::port::{WorkspaceEntry, WorkspaceError, Workspaces};
use wakeful_wire::EnvId;

/// Workspaces as directories `{root}/{envId}`, each readable by the platform's user alone.
#[derive(Debug, Clone)]
pub struct DirectoryWorkspaces {
    root: PathBuf,
}

impl DirectoryWorkspaces {
    /// Workspaces below `root`, which is made if there is none.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn open(root: &Path) -> Result<Self, WorkspaceError> {
        make_private(root)?;
        Ok(Self { root: root.to_owned() })
    }

    fn path(&self, env: EnvId) -> PathBuf {
        self.root.join(env.to_string())
    }
}

fn failed(error: impl std::fmt::Display) -> WorkspaceError {
    WorkspaceError(error.to_string())
}

fn make_private(path: &Path) -> Result<(), WorkspaceError> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, WorkspaceError> {
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}

#[async_trait]
impl Workspaces for DirectoryWorkspaces {
    async fn create(&self, env: EnvId) -> Result<PathBuf, WorkspaceError> {
        let path = self.path(env);
        blocking(move || make_private(&path).map(|()| path)).await
    }

    async fn locate(&self, env: EnvId) -> Result<Option<PathBuf>, WorkspaceError> {
        let path = self.path(env);
        blocking(move || match std::fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => Ok(Some(path)),
            Ok(_) => Err(WorkspaceError("it is not a directory".into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        })
        .await
    }

    async fn list(&self) -> Result<Vec<WorkspaceEntry>, WorkspaceError> {
        let root = self.root.clone();
        blocking(move || {
            let mut found = Vec::new();
            for entry in std::fs::read_dir(&root).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                // Whatever is not named like a workspace is not ours to touch.
                let Some(env) = entry.file_name().to_str().and_then(|name| name.parse().ok())
                else {
                    continue;
                };
                let meta = entry.metadata().map_err(failed)?;
                if !meta.is_dir() {
                    continue;
                }
                let changed = meta.modified().map_err(failed)?;
                let age = SystemTime::now().duration_since(changed).unwrap_or_default();
                found.push(WorkspaceEntry { env, age });
            }
            Ok(found)
        })
        .await
    }

    async fn remove(&self, env: EnvId) -> Result<(), WorkspaceError> {
        let path = self.path(env);
        // `remove_dir_all` opens each directory relative to its parent and follows no link.
        blocking(move || match std::fs::remove_dir_all(&path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed(error)),
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakeful_lifecycle::testing::{an_env, contract::workspaces::workspaces_contract};

    #[tokio::test]
    async fn directories_keep_the_workspaces_contract() {
        let root = tempfile::tempdir().unwrap();
        let workspaces = DirectoryWorkspaces::open(&root.path().join("w")).unwrap();
        workspaces_contract(&workspaces).await;
    }

    #[tokio::test]
    async fn removing_follows_no_link_and_names_that_are_not_ids_are_not_ours() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("kept"), "x").unwrap();
        let workspaces = DirectoryWorkspaces::open(root.path()).unwrap();
        let env = an_env();
        let path = workspaces.create(env).await.unwrap();
        std::os::unix::fs::symlink(outside.path(), path.join("link")).unwrap();
        std::fs::create_dir(root.path().join("not-an-id")).unwrap();
        workspaces.remove(env).await.unwrap();
        assert!(outside.path().join("kept").exists());
        assert!(workspaces.list().await.unwrap().is_empty());
    }
}
