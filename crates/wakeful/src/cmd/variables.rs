//! `vars`: an environment's variables and secrets.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    args::{VarsArgs, VarsWhat},
    prompt, select,
};
use crate::{
    client::Client,
    output::{self, Output},
};

/// `wakeful vars`.
pub(super) async fn run(
    client: &Client,
    options: VarsArgs,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let env = select::find_environment(client, &options.env).await?;
    let id = env.id.to_string();
    let names = match options.what.unwrap_or(VarsWhat::List) {
        VarsWhat::List => {
            let variables: Vec<Value> =
                client.get(&["api", "environments", &id, "variables"]).await?;
            output.print(&variables, |variables| table(variables))?;
            return Ok(ExitCode::SUCCESS);
        }
        VarsWhat::Set { variables, secret } => {
            let variables = assignments(&variables, secret)?;
            for (name, value) in &variables {
                let body = json!({ "value": value, "secret": secret });
                let path = ["api", "environments", &id, "variables", name.as_str()];
                client.json::<Value>(client.request(Method::PUT, path).json(&body)).await?;
            }
            variables.into_iter().map(|(name, _)| name).collect()
        }
        VarsWhat::Unset { names } => {
            for name in &names {
                let path = ["api", "environments", &id, "variables", name.as_str()];
                client.json::<Value>(client.request(Method::DELETE, path)).await?;
            }
            names
        }
    };
    output.print(&json!({ "environment": id, "changed": names }), |_| {
        "Changed. Programs see it when the environment starts the next time.".to_owned()
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Names and values to set. A secret's value comes from standard input.
fn assignments(written: &[String], secret: bool) -> anyhow::Result<Vec<(String, String)>> {
    if !secret {
        return written.iter().map(|text| assignment(text)).collect();
    }
    match written {
        [name] if !name.contains('=') => Ok(vec![(name.clone(), prompt::from_stdin()?)]),
        [_] => bail!("give a secret's value on standard input, not as an argument"),
        _ => bail!("set one secret at a time: its value is read from standard input"),
    }
}

fn assignment(text: &str) -> anyhow::Result<(String, String)> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .with_context(|| format!("`{text}` is not NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn table(variables: &[Value]) -> String {
    let rows: Vec<_> = variables
        .iter()
        .map(|variable| {
            let text = |name: &str| variable[name].as_str().unwrap_or_default().to_owned();
            let secret = variable["secret"].as_bool().unwrap_or(false);
            [text("name"), text("value"), if secret { "secret".to_owned() } else { String::new() }]
        })
        .collect();
    output::table(["NAME", "VALUE", ""], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_hold_an_equals_sign_but_a_name_must_be_there() {
        assert_eq!(assignment("A=b=c").unwrap(), ("A".to_owned(), "b=c".to_owned()));
        assert_eq!(assignment("A=").unwrap(), ("A".to_owned(), String::new()));
        assert!(assignment("A").is_err());
        assert!(assignment("=b").is_err());
    }

    #[test]
    fn a_secret_is_never_taken_from_an_argument() {
        assert!(assignments(&["KEY=value".to_owned()], true).is_err());
        assert!(assignments(&["A".to_owned(), "B".to_owned()], true).is_err());
    }
}
