//! What every [`Workspaces`] must do.

use crate::{port::Workspaces, testing::an_env};

/// Runs the whole suite.
///
/// # Panics
/// When the contract is broken.
pub async fn workspaces_contract(workspaces: &dyn Workspaces) {
    let (one, two) = (an_env(), an_env());
    assert_eq!(workspaces.locate(one).await.expect("locate"), None);
    let path = workspaces.create(one).await.expect("create");
    assert_eq!(workspaces.locate(one).await.expect("locate"), Some(path.clone()));
    assert_eq!(workspaces.create(one).await.expect("create again"), path, "create is idempotent");
    let other = workspaces.create(two).await.expect("create");
    assert_ne!(path, other, "two environments never share a directory");
    let listed: Vec<_> = workspaces.list().await.expect("list").iter().map(|e| e.env).collect();
    assert!(listed.contains(&one) && listed.contains(&two));
    workspaces.remove(one).await.expect("remove");
    workspaces.remove(one).await.expect("remove is idempotent");
    assert_eq!(workspaces.locate(one).await.expect("locate"), None);
    assert_eq!(workspaces.locate(two).await.expect("locate"), Some(other), "its neighbour stays");
}
