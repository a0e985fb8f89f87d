//! Variables and secrets of environments, handed to their processes at the next start.
//!
//! They stand beside the template's own and win over them. A secret's value is never shown again.

use std::collections::BTreeMap;

use async_trait::async_trait;
use wakeful_lifecycle::port::StoreError;
use wakeful_wire::{Code, EnvId, Timestamp};

use crate::{
    accounts::{Sources, secret::draw_password},
    engine::{LaunchSettings, LaunchVariables},
    store::{Database, database::failed},
};

/// The most characters of a name.
pub const NAME_MAX: usize = 128;
/// The most bytes of a value. A process cannot be given much more in one variable.
pub const VALUE_MAX: usize = 64 * 1024;
/// The most variables of one environment.
pub const COUNT_MAX: usize = 200;
/// The most bytes of all names and values of one environment: together with the arguments they
/// must fit what a kernel hands to a new process.
pub const TOTAL_MAX: usize = 512 * 1024;

/// What people see of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableView {
    /// Its name.
    pub name: String,
    /// Whether its value is hidden.
    pub secret: bool,
    /// The value; a secret's is masked.
    pub shown: String,
    /// When it was set.
    pub updated_at: Timestamp,
}

/// Why a variable was not set or removed.
#[derive(Debug, thiserror::Error)]
pub enum VariableError {
    /// The name or value cannot be one.
    #[error("invalid {field}")]
    Invalid {
        /// `name` or `value`.
        field: &'static str,
        /// What is wrong, for the outside.
        detail: String,
    },
    /// There is no variable of that name.
    #[error("there is no such variable")]
    NotFound,
    /// The database failed.
    #[error("the database failed")]
    Store(#[from] StoreError),
}

impl VariableError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Invalid { .. } => Code::Invalid,
            Self::NotFound => Code::NotFound,
            Self::Store(_) => Code::Internal,
        }
    }

    /// A sentence for the outside.
    #[must_use]
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::Invalid { detail, .. } => Some(detail.clone()),
            Self::NotFound => Some("There is no variable of that name.".into()),
            Self::Store(_) => None,
        }
    }

    fn invalid(field: &'static str, detail: impl Into<String>) -> Self {
        Self::Invalid { field, detail: detail.into() }
    }
}

/// Variables and secrets of every environment. A cheap handle.
#[derive(Debug, Clone)]
pub struct Variables {
    database: Database,
    sources: Sources,
}

impl Variables {
    /// The variables of a database.
    #[must_use]
    pub const fn new(database: Database, sources: Sources) -> Self {
        Self { database, sources }
    }

    /// An environment's variables, by name.
    ///
    /// # Errors
    /// When the database cannot be asked.
    pub async fn list(&self, env: EnvId) -> Result<Vec<VariableView>, VariableError> {
        let rows: Vec<(String, String, bool, i64)> = sqlx::query_as(
            "SELECT name, value, secret, updated_at FROM variables WHERE env = ? ORDER BY name",
        )
        .bind(env.to_string())
        .fetch_all(self.database.reader())
        .await
        .map_err(failed)?;
        let view = |(name, value, secret, updated_at): (String, String, bool, i64)| VariableView {
            shown: if secret { mask(&value) } else { value },
            name,
            secret,
            updated_at: Timestamp(updated_at.cast_unsigned()),
        };
        Ok(rows.into_iter().map(view).collect())
    }

    /// Sets a variable. True if there was none of that name.
    ///
    /// # Errors
    /// [`VariableError::Invalid`] for what cannot be a name or value, or is one too many.
    pub async fn set(
        &self,
        env: EnvId,
        name: &str,
        value: &str,
        secret: bool,
    ) -> Result<bool, VariableError> {
        check_name(name)?;
        check_value(value)?;
        let mut transaction = self.database.write().await?;
        let (count, total): (i64, i64) = sqlx::query_as(
            "SELECT count(*), coalesce(sum(length(CAST(name AS BLOB)) + length(CAST(value AS BLOB))), 0) \
             FROM variables WHERE env = ? AND name != ?",
        )
        .bind(env.to_string())
        .bind(name)
        .fetch_one(&mut *transaction)
        .await
        .map_err(failed)?;
        if usize::try_from(count).unwrap_or(usize::MAX) >= COUNT_MAX {
            let detail = format!("There are {COUNT_MAX} variables already. Remove one first.");
            return Err(VariableError::invalid("name", detail));
        }
        let total = usize::try_from(total).unwrap_or(usize::MAX);
        if total.saturating_add(name.len() + value.len()) > TOTAL_MAX {
            let detail = format!("All variables together may have {TOTAL_MAX} bytes.");
            return Err(VariableError::invalid("value", detail));
        }
        let known: Option<i64> =
            sqlx::query_scalar("SELECT 1 FROM variables WHERE env = ? AND name = ?")
                .bind(env.to_string())
                .bind(name)
                .fetch_optional(&mut *transaction)
                .await
                .map_err(failed)?;
        sqlx::query(
            "INSERT INTO variables (env, name, value, secret, updated_at) VALUES (?, ?, ?, ?, ?) \
             ON CONFLICT (env, name) DO UPDATE SET value = excluded.value, \
             secret = excluded.secret, updated_at = excluded.updated_at",
        )
        .bind(env.to_string())
        .bind(name)
        .bind(value)
        .bind(secret)
        .bind(self.sources.now().0.cast_signed())
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        Ok(known.is_none())
    }

    /// Removes a variable.
    ///
    /// # Errors
    /// [`VariableError::NotFound`] when there is none of that name.
    pub async fn remove(&self, env: EnvId, name: &str) -> Result<(), VariableError> {
        let removed = sqlx::query("DELETE FROM variables WHERE env = ? AND name = ?")
            .bind(env.to_string())
            .bind(name)
            .execute(self.database.writer())
            .await
            .map_err(failed)?;
        if removed.rows_affected() == 0 { Err(VariableError::NotFound) } else { Ok(()) }
    }

    /// Removes what belongs to environments that neither a row nor a tombstone names any more, and
    /// was set before `before`: an environment that is just being made is not forgotten.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn forget_unnamed(&self, before: Timestamp) -> Result<(), StoreError> {
        const UNNAMED: &str = "NOT EXISTS (SELECT 1 FROM environments WHERE id = env) AND \
             NOT EXISTS (SELECT 1 FROM tombstone_environments AS kept WHERE kept.env = own.env)";
        let mut transaction = self.database.write().await?;
        for (table, time) in [("variables", "updated_at"), ("basic_passwords", "created_at")] {
            let delete = format!("DELETE FROM {table} AS own WHERE {time} < ? AND {UNNAMED}");
            sqlx::query(sqlx::AssertSqlSafe(delete))
                .bind(before.0.cast_signed())
                .execute(&mut *transaction)
                .await
                .map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)
    }

    async fn basic_password(&self, env: EnvId) -> Result<String, StoreError> {
        let known: Option<String> =
            sqlx::query_scalar("SELECT password FROM basic_passwords WHERE env = ?")
                .bind(env.to_string())
                .fetch_optional(self.database.reader())
                .await
                .map_err(failed)?;
        if let Some(password) = known {
            return Ok(password);
        }
        // Two launches at once agree on whichever was stored first.
        sqlx::query_scalar(
            "INSERT INTO basic_passwords (env, password, created_at) VALUES (?, ?, ?) \
             ON CONFLICT (env) DO UPDATE SET password = basic_passwords.password \
             RETURNING password",
        )
        .bind(env.to_string())
        .bind(draw_password(&self.sources))
        .bind(self.sources.now().0.cast_signed())
        .fetch_one(self.database.writer())
        .await
        .map_err(failed)
    }
}

#[async_trait]
impl LaunchSettings for Variables {
    async fn launch(&self, env: EnvId) -> Result<LaunchVariables, StoreError> {
        let variables: Vec<(String, String)> =
            sqlx::query_as("SELECT name, value FROM variables WHERE env = ?")
                .bind(env.to_string())
                .fetch_all(self.database.reader())
                .await
                .map_err(failed)?;
        let variables: BTreeMap<_, _> = variables.into_iter().collect();
        Ok(LaunchVariables { variables, basic_password: self.basic_password(env).await? })
    }
}

fn check_name(name: &str) -> Result<(), VariableError> {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    let fits = first && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !fits || name.len() > NAME_MAX {
        let detail = format!(
            "A name has letters, digits and underscores, begins with no digit, and has at most \
             {NAME_MAX} characters."
        );
        return Err(VariableError::invalid("name", detail));
    }
    // These are what a surface is started and recognised by.
    if name == "PORT" || name.starts_with("WAKEFUL_") {
        return Err(VariableError::invalid("name", "This name is the platform's own."));
    }
    Ok(())
}

fn check_value(value: &str) -> Result<(), VariableError> {
    if value.len() > VALUE_MAX {
        let detail = format!("A value has at most {VALUE_MAX} bytes.");
        return Err(VariableError::invalid("value", detail));
    }
    if value.contains('\0') {
        return Err(VariableError::invalid("value", "A value cannot hold a zero byte."));
    }
    Ok(())
}

/// What is shown of a secret: enough of a long one to tell it from another, nothing of a short one,
/// and never how long it is.
fn mask(value: &str) -> String {
    let count = value.chars().count();
    let shown = if count >= 16 { 4 } else { 0 };
    let tail: String = value.chars().skip(count - shown).collect();
    format!("••••••••{tail}")
}

#[cfg(test)]
mod tests {
    use wakeful_lifecycle::testing::an_env;

    use super::*;
    use crate::accounts::testing::Bench;

    async fn variables() -> (Bench, Variables) {
        let bench = Bench::open().await;
        let variables = Variables::new(bench.database.clone(), bench.accounts.sources().clone());
        (bench, variables)
    }

    #[tokio::test]
    async fn processes_get_the_value_and_people_a_mask() {
        let (_bench, variables) = variables().await;
        let (env, other) = (an_env(), an_env());
        assert!(variables.set(env, "API_KEY", "sk-0123456789abcdef", true).await.unwrap());
        assert!(variables.set(env, "GREETING", "hello", false).await.unwrap());
        assert!(!variables.set(env, "GREETING", "servus", false).await.unwrap());
        let list = variables.list(env).await.unwrap();
        let shown: Vec<_> = list.iter().map(|v| (v.name.as_str(), v.shown.as_str())).collect();
        assert_eq!(shown, [("API_KEY", "••••••••cdef"), ("GREETING", "servus")]);
        let launch = variables.launch(env).await.unwrap();
        assert_eq!(launch.variables["API_KEY"], "sk-0123456789abcdef");
        assert!(variables.launch(other).await.unwrap().variables.is_empty());
        variables.remove(env, "API_KEY").await.unwrap();
        assert!(matches!(variables.remove(env, "API_KEY").await, Err(VariableError::NotFound)));
    }

    #[tokio::test]
    async fn each_environment_keeps_a_basic_password_of_its_own() {
        let (_bench, variables) = variables().await;
        let (env, other) = (an_env(), an_env());
        let (first, second) = tokio::join!(variables.launch(env), variables.launch(env));
        let first = first.unwrap().basic_password;
        assert_eq!(first, second.unwrap().basic_password);
        assert!(first.len() >= 32);
        assert_ne!(first, variables.launch(other).await.unwrap().basic_password);
    }

    #[test]
    fn a_mask_tells_neither_a_short_secret_nor_a_length() {
        assert_eq!(mask("hunter2"), mask(""));
        assert_eq!(mask("0123456789abcdef"), mask("zzzzzzzzzzzzzzzzzzzzzzzzzzzcdef"));
    }

    #[test]
    fn what_can_be_a_variable() {
        for good in ["A", "_x", "API_KEY2"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "2A", "A-B", "A B", "É", "A=B", "PORT", "WAKEFUL_X", &"A".repeat(129)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
        assert!(check_value("multi\nline").is_ok());
        assert!(check_value("a\0b").is_err());
        assert!(check_value(&"x".repeat(VALUE_MAX + 1)).is_err());
    }

    #[tokio::test]
    async fn numbers_and_sizes_are_bounded() {
        let (_bench, variables) = variables().await;
        let env = an_env();
        for n in 0..8 {
            variables.set(env, &format!("V{n}"), &"x".repeat(60_000), false).await.unwrap();
        }
        let full = variables.set(env, "W", &"x".repeat(60_000), false).await;
        assert!(matches!(full, Err(VariableError::Invalid { field: "value", .. })));
        let env = an_env();
        for n in 0..COUNT_MAX {
            variables.set(env, &format!("V{n}"), "x", false).await.unwrap();
        }
        assert!(variables.set(env, "ONE_MORE", "x", false).await.is_err());
        assert!(variables.set(env, "V0", "again", false).await.is_ok());
    }

    #[tokio::test]
    async fn what_nothing_names_any_more_is_forgotten_after_a_while() {
        let (bench, variables) = variables().await;
        let env = an_env();
        variables.set(env, "A", "x", false).await.unwrap();
        let password = variables.launch(env).await.unwrap().basic_password;
        let set_at = variables.sources.now();
        variables.forget_unnamed(set_at).await.unwrap();
        assert_eq!(variables.list(env).await.unwrap().len(), 1, "too young");
        bench.clock.advance(std::time::Duration::from_secs(1));
        variables.forget_unnamed(variables.sources.now()).await.unwrap();
        assert!(variables.list(env).await.unwrap().is_empty());
        assert_ne!(variables.launch(env).await.unwrap().basic_password, password);
    }
}
