//! Projects: made, listed, deleted, restored.

use std::sync::Arc;

use wakeful_lifecycle::{
    Command, Intent, Record,
    port::{Loaded, ProjectRow, StoreError, Tombstone},
};
use wakeful_wire::{
    EnvId, ProjectId, Slug, TemplateName, UserName,
    api::{self, DeletedProject, TemplateView},
    gate::GateEvent,
};

use super::{Engine, EngineError, worker::RACES_MAX};

/// Something with its owner: whoever shows it checks that first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned<T> {
    /// Whose it is.
    pub owner: UserName,
    /// What it is.
    pub value: T,
}

impl Engine {
    /// Makes a project with its Development environment, and wakes that if asked.
    ///
    /// A template that is named must be able to run here. The default one is taken as it is: whoever
    /// signs up gets a project whose environment says what is missing.
    ///
    /// # Errors
    /// [`EngineError::UnknownTemplate`], [`EngineError::MissingProgram`], or a failing store.
    pub async fn create_project(
        &self,
        owner: &UserName,
        title: &str,
        template: Option<&TemplateName>,
        wake: bool,
    ) -> Result<api::Project, EngineError> {
        let name = template.unwrap_or(&self.inner.config.default_template).clone();
        let found = self.template(&name).map(Arc::clone);
        let found = found.ok_or_else(|| EngineError::UnknownTemplate(name.clone()))?;
        if template.is_some()
            && let Some(reason) = (self.inner.parts.programs)(&found)
        {
            return Err(EngineError::MissingProgram { template: name, reason });
        }
        let now = self.now();
        let id = self.inner.parts.surroundings.fresh_project();
        let row = ProjectRow {
            id,
            owner: owner.clone(),
            title: title.to_owned(),
            template: name.clone(),
            created_at: now,
        };
        let slug = Slug::new("dev").map_err(|error| StoreError::Failed(error.to_string()))?;
        let record = Record::new(id.into(), id, owner.clone(), slug, name, now);
        self.inner.parts.store.create_project(&row, &record).await?;
        // Files can be put there before it has ever run.
        let made = self.inner.parts.workspaces.create(record.id).await;
        made.map_err(EngineError::Workspace)?;
        let loaded = if wake {
            self.apply_command(record.id, Command::WakeNow).await?
        } else {
            self.load(record.id).await?
        };
        Ok(self.project_view(&row, std::slice::from_ref(&loaded)))
    }

    /// A project.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn project(&self, id: ProjectId) -> Result<Option<Owned<api::Project>>, EngineError> {
        let found = self.inner.parts.store.project(id).await?;
        Ok(found.filter(|(_, environments)| is_live(environments)).map(|(row, environments)| {
            Owned { owner: row.owner.clone(), value: self.project_view(&row, &environments) }
        }))
    }

    /// A user's projects, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn projects(&self, owner: &UserName) -> Result<Vec<api::Project>, EngineError> {
        let found = self.inner.parts.store.projects(owner).await?;
        let live = found.iter().filter(|(_, environments)| is_live(environments));
        Ok(live.map(|(row, environments)| self.project_view(row, environments)).collect())
    }

    /// An environment.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn environment(
        &self,
        env: EnvId,
    ) -> Result<Option<Owned<api::Environment>>, EngineError> {
        let found = self.inner.parts.store.load(env).await?;
        Ok(found
            .filter(|loaded| loaded.record.intent != Intent::Deleted)
            .map(|loaded| Owned { owner: loaded.record.owner.clone(), value: self.view(&loaded) }))
    }

    /// The directory of an environment's workspace.
    ///
    /// # Errors
    /// [`EngineError::Workspace`] when it cannot be made or reached.
    pub async fn workspace(&self, env: EnvId) -> Result<std::path::PathBuf, EngineError> {
        self.inner.parts.workspaces.create(env).await.map_err(EngineError::Workspace)
    }

    /// Deletes a project: it is gone for its visitors at once, its sandboxes are taken down, and
    /// then its rows become a tombstone in one transaction. Idempotent.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] when there is neither project nor tombstone, or a failing store.
    pub async fn delete_project(&self, id: ProjectId) -> Result<(), EngineError> {
        let Some((_, environments)) = self.inner.parts.store.project(id).await? else {
            let buried = self.inner.parts.store.tombstone(id).await?.is_some();
            return if buried { Ok(()) } else { Err(EngineError::NotFound) };
        };
        for loaded in environments {
            match self.apply_command(loaded.record.id, Command::Delete).await {
                // Buried meanwhile by the environment's own task.
                Ok(_) | Err(EngineError::NotFound) => {}
                Err(error) => return Err(error),
            }
            self.announce(GateEvent::RouteChanged { env: loaded.record.id });
        }
        Ok(())
    }

    /// Nothing of this environment runs any more. When that is true of its whole project, the rows
    /// become a tombstone.
    pub(super) async fn bury(&self, env: EnvId) -> Result<(), EngineError> {
        let Some(loaded) = self.inner.parts.store.load(env).await? else { return Ok(()) };
        let id = loaded.record.project;
        let Some((_, environments)) = self.inner.parts.store.project(id).await? else {
            return Ok(());
        };
        let over = environments.iter().all(|loaded| {
            loaded.record.intent == Intent::Deleted && loaded.record.sandbox.is_none()
        });
        if over {
            let now = self.now();
            let keep_until = now.after(self.inner.config.retention);
            self.inner.parts.store.bury(id, now, keep_until).await?;
            tracing::info!(project = %id, "deleted; it can be restored until its tombstone is reaped");
        }
        Ok(())
    }

    /// A user's deleted projects that can still be restored, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn deleted(&self, owner: &UserName) -> Result<Vec<DeletedProject>, EngineError> {
        let store = &self.inner.parts.store;
        // Those whose sandbox is still being taken down have no tombstone yet, and get one as their
        // rows go. Looked for in this order, each is found at least once.
        let projects = store.projects(owner).await?;
        let mut deleted: Vec<_> = store.tombstones(owner).await?.iter().map(deleted_view).collect();
        for (row, environments) in projects {
            if !is_live(&environments) && deleted.iter().all(|buried| buried.id != row.id) {
                deleted.insert(0, self.dying_view(&row));
            }
        }
        // What has expired is the reaper's.
        let now = self.now();
        deleted.retain(|deleted| deleted.keep_until > now);
        Ok(deleted)
    }

    /// One deleted project that can still be restored.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn deleted_project(
        &self,
        id: ProjectId,
    ) -> Result<Option<Owned<DeletedProject>>, EngineError> {
        let store = &self.inner.parts.store;
        // In this order, as in `deleted`.
        let dying = store.project(id).await?.filter(|(_, environments)| !is_live(environments));
        if let Some(tombstone) = store.tombstone(id).await? {
            if tombstone.keep_until <= self.now() {
                return Ok(None);
            }
            let owner = tombstone.project.owner.clone();
            return Ok(Some(Owned { owner, value: deleted_view(&tombstone) }));
        }
        Ok(dying.map(|(row, _)| Owned { owner: row.owner.clone(), value: self.dying_view(&row) }))
    }

    fn dying_view(&self, row: &ProjectRow) -> DeletedProject {
        let deleted_at = self.now();
        let keep_until = deleted_at.after(self.inner.config.retention);
        DeletedProject { id: row.id, title: row.title.clone(), deleted_at, keep_until }
    }

    /// Undoes a deletion: everything is there again, asleep.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] when it cannot be restored (any more), or a failing store.
    pub async fn restore_project(&self, id: ProjectId) -> Result<(), EngineError> {
        for _ in 0..RACES_MAX {
            if self.try_restore(id).await? {
                self.announce(GateEvent::RouteChanged { env: id.into() });
                return Ok(());
            }
        }
        Err(EngineError::Contended)
    }

    /// False when the project was buried between the look for its tombstone and the look for its
    /// rows: the next try finds the tombstone.
    async fn try_restore(&self, id: ProjectId) -> Result<bool, EngineError> {
        let store = &self.inner.parts.store;
        let rows = store.project(id).await?;
        match store.restore(id, self.now()).await {
            Ok(()) => return Ok(true),
            Err(StoreError::Missing) => {}
            Err(error) => return Err(error.into()),
        }
        let Some((_, environments)) = rows else { return Err(EngineError::NotFound) };
        for loaded in environments {
            match self.apply_command(loaded.record.id, Command::Undelete).await {
                // Not deleted at all: as wanted.
                Ok(_) | Err(EngineError::Refused(_)) => {}
                Err(EngineError::NotFound) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// The templates that can be chosen, with what is missing for each.
    #[must_use]
    pub fn templates(&self) -> Vec<TemplateView> {
        let view = |(name, template): (&TemplateName, &Arc<wakeful_wire::template::Template>)| {
            TemplateView {
                name: name.clone(),
                title: template.title(name).to_owned(),
                description: template.description.clone(),
                surfaces: template.surfaces.keys().cloned().collect(),
                missing: (self.inner.parts.programs)(template),
            }
        };
        self.inner.config.templates.iter().map(view).collect()
    }

    /// What a project runs when nobody says.
    #[must_use]
    pub fn default_template(&self) -> &TemplateName {
        &self.inner.config.default_template
    }
}

fn is_live(environments: &[Loaded]) -> bool {
    environments.iter().any(|loaded| loaded.record.intent != Intent::Deleted)
}

fn deleted_view(tombstone: &Tombstone) -> DeletedProject {
    DeletedProject {
        id: tombstone.project.id,
        title: tombstone.project.title.clone(),
        deleted_at: tombstone.deleted_at,
        keep_until: tombstone.keep_until,
    }
}
