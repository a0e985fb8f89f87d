//! `cargo xtask nightly`: the properties that find more the longer they run.
//!
//! Each run of a property is told by one number. A run that fails leaves that number, what was
//! said, and the command that does the same again, in a file below `target/failures`.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use anyhow::{Context as _, bail};

use crate::{
    root,
    step::{Steps, command, say},
};

/// Where failing inputs are kept.
const FAILURES: &str = "target/failures";

/// Lines of a failure that are kept at most; the last ones.
const KEPT: usize = 400;

/// A property, and how far it goes in a night.
struct Property {
    /// Its step, and the stem of its file.
    name: &'static str,
    /// The package and the test, for cargo.
    test: &'static [&'static str],
    /// The variable that says how far, and how far. 1 is always one run.
    far: (&'static str, &'static str),
    /// The variable that says which run is the first, and the words before it in what a failure
    /// says.
    first: (&'static str, &'static str),
}

const PROPERTIES: &[Property] = &[
    Property {
        name: "threads",
        test: &["wakeful-envd", "--lib", "every_subscriber_ends_with_what_the_log_has"],
        far: ("WAKEFUL_STEPS", "10000000"),
        first: ("WAKEFUL_SEED", "the run with WAKEFUL_SEED="),
    },
    Property {
        name: "clients",
        test: &["wakeful-link", "--lib", "a_random_life_ends_with_everything_there"],
        far: ("WAKEFUL_STEPS", "10000000"),
        first: ("WAKEFUL_SEED", "the run with WAKEFUL_SEED="),
    },
    Property {
        name: "suspends",
        test: &["wakeful-sim", "--test=suspend_race", "no_request_is_cut_by_a_suspend"],
        far: ("WAKEFUL_SIM_SEEDS", "100000"),
        first: ("WAKEFUL_SIM_FIRST", "seed "),
    },
    Property {
        name: "turns",
        test: &["wakeful-sim", "--test=turn_race", "no_turn_is_cut_by_an_idle_suspend"],
        far: ("WAKEFUL_SIM_SEEDS", "100000"),
        first: ("WAKEFUL_SIM_FIRST", "seed "),
    },
];

/// Runs them all. `first` is where their runs begin, so that each night can go on where the last
/// one ended.
pub(crate) fn run(first: Option<&str>) -> anyhow::Result<()> {
    if let Some(first) = first {
        first.parse::<u64>().with_context(|| format!("`{first}` is no number of a run"))?;
    }
    let mut steps = Steps::default();
    for property in PROPERTIES {
        steps.step(property.name, || property.run(first));
    }
    steps.finish()
}

impl Property {
    fn words(&self) -> Vec<&str> {
        let (package, rest) = self.test.split_first().unwrap_or((&"", &[]));
        let mut words = vec!["test", "--locked", "--package", package];
        words.extend(rest);
        words
    }

    fn run(&self, first: Option<&str>) -> anyhow::Result<()> {
        let words = self.words();
        let mut test = command("cargo", &words);
        // Not what a developer happens to have set: the night's own bounds.
        let far = std::env::var_os(self.far.0).unwrap_or_else(|| self.far.1.into());
        test.env(self.far.0, &far).env_remove(self.first.0);
        if let Some(first) = first {
            test.env(self.first.0, first);
        }
        say(&format!("  $ {}={} cargo {}", self.far.0, far.display(), words.join(" ")));
        // What a failing test says goes to standard output once it has ended.
        let mut child = test.stdout(Stdio::piped()).spawn().context("cargo cannot be run")?;
        let mut said = Vec::new();
        if let Some(output) = child.stdout.take() {
            for line in BufReader::new(output).lines() {
                let line = line?;
                say(&line);
                if said.len() == KEPT {
                    said.remove(0);
                }
                said.push(line);
            }
        }
        if child.wait()?.success() {
            return Ok(());
        }
        let Some(input) = failing_input(&said, self.first.1) else {
            bail!("it failed without a run of its own; see above");
        };
        let replay = format!("{}=1 {}={input} cargo {}", self.far.0, self.first.0, words.join(" "));
        let directory = root().join(FAILURES);
        fs::create_dir_all(&directory)?;
        let file = directory.join(format!("{}-{input}.txt", self.name));
        fs::write(&file, format!("{replay}\n\n{}\n", said.join("\n")))?;
        bail!("kept in {}; once more: {replay}", file.display());
    }
}

/// The number after the last of these words.
fn failing_input(said: &[String], words: &str) -> Option<u64> {
    said.iter().rev().find_map(|line| {
        let (_, rest) = line.split_once(words)?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_the_failing_run_is_found_in_what_was_said() {
        let table: &[(&[&str], &str, Option<u64>)] = &[
            (&["the run with WAKEFUL_SEED=7 failed; see above"], "WAKEFUL_SEED=", Some(7)),
            (&["seed 12 with 3 gateways; see above", "note: more"], "seed ", Some(12)),
            (&["seed 1 with", "seed 2 with"], "seed ", Some(2)),
            (&["a seed of doubt", "nothing"], "seed ", None),
            (&[], "seed ", None),
        ];
        for (said, words, expected) in table {
            let said: Vec<String> = said.iter().map(|line| (*line).to_owned()).collect();
            assert_eq!(failing_input(&said, words), *expected, "{said:?}");
        }
    }
}
