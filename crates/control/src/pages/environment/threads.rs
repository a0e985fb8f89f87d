//! How an environment's threads are reached.

use maud::{Markup, html};
use wakeful_wire::{
    api::Project,
    template::{SHELL_AGENT, Template},
};

/// The agents that threads can be made with, and the commands that make one and follow it.
pub(super) fn card(project: &Project, template: Option<&Template>) -> Markup {
    let title = quoted(&project.title);
    let default = template.map_or(SHELL_AGENT, Template::default_agent);
    let agents = template.into_iter().flat_map(|template| &template.agents);
    let named = agents.map(|(name, agent)| (name.as_str(), agent.title.as_deref()));
    let all = named.chain([(SHELL_AGENT, Some("runs commands"))]);
    html! {
        section .card aria-labelledby="threads" {
            h2 #threads { "Threads" }
            p .muted {
                "A thread is work for an agent. It is kept here, and goes on while nobody looks."
            }
            ul .list {
                @for (name, about) in all {
                    li {
                        div .grow {
                            strong { (name) }
                            @if let Some(about) = about { span .muted { " " (about) } }
                        }
                        @if name == default { span .tag { "default" } }
                    }
                }
            }
            p { "From a terminal:" }
            pre tabindex="0" aria-label="Commands for threads" {
                "wakeful send " (title) " --agent shell 'ls'\n"
                "wakeful attach " (title)
            }
        }
    }
}

/// A text as one word of a shell's command line.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn project(title: &str) -> Project {
        let id = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f";
        let project = json!({ "id": id, "title": title, "template": "demo", "environments": [] });
        serde_json::from_value(project).unwrap()
    }

    #[test]
    fn a_title_is_one_word_of_the_command_line() {
        let card = card(&project("Ada's <site>"), None).into_string();
        let word = r"'Ada'\''s &lt;site&gt;'";
        assert!(card.contains(&format!("wakeful send {word} --agent shell 'ls'\n")), "{card}");
        assert!(card.contains(&format!("wakeful attach {word}<")), "{card}");
    }

    #[test]
    fn the_agents_are_those_of_the_template_and_always_the_shell() {
        let agents = json!({ "opencode": { "command": "opencode acp", "title": "OpenCode" } });
        let template: Template = serde_json::from_value(json!({ "agents": agents })).unwrap();
        let names = |template| {
            let card = card(&project("x"), template).into_string();
            let names = card.split("<strong>").skip(1).filter_map(|rest| rest.split_once('<'));
            names.map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(Some(&template)), ["opencode", "shell"]);
        assert_eq!(names(None), ["shell"]);
        let card = card(&project("x"), Some(&template)).into_string();
        let (opencode, shell) = card.split_once("<strong>shell").unwrap();
        assert!(opencode.contains("OpenCode") && opencode.contains("default"), "{card}");
        assert!(!shell.contains("default"), "{card}");
    }
}
