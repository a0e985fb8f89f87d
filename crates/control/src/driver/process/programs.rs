//! Whether a template's programs are there and within a sandbox's reach.

use std::{
    ffi::OsStr,
    fs,
    io::Read,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
};

use wakeful_wire::{sandbox::BASE_READABLE, template::Template};

/// How many interpreters are followed from one to the next.
const INTERPRETERS_MAX: usize = 4;

/// Where programs are looked for and what a sandbox can read.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// The directories of `$PATH`.
    pub path: Vec<PathBuf>,
    /// The trees around some of them ([`Reach::new`]).
    pub around: Vec<PathBuf>,
    /// What a sandbox can read beside [`BASE_READABLE`], `path` and `around`. `None` where nothing
    /// keeps it from reading everything.
    pub readable: Option<Vec<PathBuf>>,
}

impl Reach {
    /// Takes `$PATH` apart. Relative directories in it mean another place in each workspace and
    /// are passed over.
    ///
    /// The programs in a `shims` directory (pyenv, asdf) lead to others beside it, and those in a
    /// `bin` directory load what stands beside that. So the directory around is in reach as well,
    /// unless it holds `home` or one of `kept`, the platform's own directories. Around a `bin` a
    /// direct child of `home` is not either: `~/.local` and `~/.cargo` hold secrets. Where `home`
    /// is unknown, nothing around is in reach.
    #[must_use]
    pub fn new(
        path: &OsStr,
        home: Option<&Path>,
        kept: &[&Path],
        readable: Option<Vec<PathBuf>>,
    ) -> Self {
        let path: Vec<_> = std::env::split_paths(path).filter(|dir| dir.is_absolute()).collect();
        let around = home.map_or_else(Vec::new, |home| {
            path.iter().filter_map(|dir| around(dir, home, kept)).collect()
        });
        Self { path, around, readable }
    }

    /// What a sandbox is to read for the sake of `$PATH`.
    pub fn of_path(&self) -> impl Iterator<Item = &PathBuf> {
        self.path.iter().chain(&self.around)
    }

    fn can_read(&self, file: &Path) -> bool {
        let Some(readable) = &self.readable else { return true };
        let base = BASE_READABLE.iter().map(Path::new);
        let all = base.chain(readable.iter().chain(self.of_path()).map(PathBuf::as_path));
        // A rule holds for what a path leads to, so links count by their ends.
        let mut roots = all.filter_map(|root| root.canonicalize().ok());
        roots.any(|root| root != Path::new("/") && file.starts_with(root))
    }

    /// A program by its absolute path, or by its name on the path.
    fn find(&self, program: &str) -> Option<PathBuf> {
        if program.contains('/') {
            let path = PathBuf::from(program);
            (path.is_absolute() && is_executable(&path)).then_some(path)
        } else {
            self.resolve(OsStr::new(program))
        }
    }

    fn resolve(&self, name: &OsStr) -> Option<PathBuf> {
        self.path.iter().map(|dir| dir.join(name)).find(|file| is_executable(file))
    }
}

/// The directory around a directory of `$PATH` that is in reach with it. A rule holds for what a
/// path leads to, so places are compared by their ends, and one that does not exist yet is none.
fn around(dir: &Path, home: &Path, kept: &[&Path]) -> Option<PathBuf> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = dir.file_name()?;
    let around = dir.parent()?.canonicalize().ok()?;
    let home = real(home);
    let holds = |path: &Path| path.starts_with(&around);
    if holds(&home) || kept.iter().any(|path| holds(&real(path))) {
        return None;
    }
    let in_reach = name == "shims" || (name == "bin" && around.parent() != Some(home.as_path()));
    in_reach.then_some(around)
}

/// What is missing before a template's surfaces can run, for people: a program that is not
/// installed, with the template's `install` hint, or one that a sandbox could not read. `None` when
/// nothing is known to be missing.
///
/// Judged are what the template says that it `needs`, and the first word of each command where that
/// plainly names a program: a variable, a shell's own word or a path within the workspace can be
/// judged by running it alone.
#[must_use]
pub fn missing_program(template: &Template, reach: &Reach) -> Option<String> {
    if let Some(missing) = template.missing(|need| reach.find(need).is_some()) {
        return Some(missing);
    }
    let words: Vec<String> = template
        .surfaces
        .values()
        .filter_map(|surface| first_word(&surface.command))
        .filter(|word| !word.contains('/') || word.starts_with('/'))
        .collect();
    template.needs.iter().chain(&words).find_map(|program| {
        let Some(found) = reach.find(program) else {
            let hint = template.install.as_deref().map_or_else(
                || "install it, or change the command".to_owned(),
                |install| format!("install it with: {install}"),
            );
            return Some(format!("`{program}` is not installed; {hint}"));
        };
        let outside = out_of_reach(&found, reach, INTERPRETERS_MAX)?;
        Some(format!(
            "`{program}` needs {}, which a sandbox cannot read; add it to `[isolation] readable`",
            outside.display(),
        ))
    })
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The first file or directory that running this program needs and a sandbox cannot read.
fn out_of_reach(program: &Path, reach: &Reach, depth: usize) -> Option<PathBuf> {
    let real = program.canonicalize().ok()?;
    if !reach.can_read(&real) {
        return Some(real);
    }
    // A virtual environment of Python: its libraries stand beside the directory of its programs.
    // Shims lead to what stands beside theirs.
    let dir = program.parent();
    let is_shim = dir.and_then(Path::file_name).is_some_and(|name| name == "shims");
    if let Some(around) = dir.and_then(Path::parent)
        && (is_shim || around.join("pyvenv.cfg").is_file())
        && let Ok(around) = around.canonicalize()
        && !reach.can_read(&around)
    {
        return Some(around);
    }
    let interpreter = interpreter(&real, reach)?;
    if depth == 0 { None } else { out_of_reach(&interpreter, reach, depth - 1) }
}

/// The program that a script's first line names (execve(2)), by way of `env` where it does.
fn interpreter(script: &Path, reach: &Reach) -> Option<PathBuf> {
    let mut head = Vec::new();
    fs::File::open(script).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let first = Path::new(OsStr::from_bytes(words.next()?));
    if first.file_name()? == "env" {
        let name = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?;
        reach.resolve(OsStr::from_bytes(name))
    } else {
        Some(first.to_owned())
    }
}

/// Words that a shell understands by itself, before which nothing can be said of what follows.
const SHELL_WORDS: &[&str] = &[
    ".", ":", "[", "alias", "break", "case", "cd", "command", "continue", "echo", "eval", "exit",
    "export", "false", "for", "if", "printf", "pwd", "read", "readonly", "return", "set", "shift",
    "test", "times", "trap", "true", "type", "ulimit", "umask", "unset", "until", "wait", "while",
    "{", "!",
];

/// The program that a shell command names first, if it plainly names one: after `exec` and
/// assignments, without quotes. `None` for everything that only a shell can tell.
fn first_word(command: &str) -> Option<String> {
    let mut words = command.split_ascii_whitespace();
    let word = words.find(|word| *word != "exec" && !is_assignment(word))?;
    let quoted = |quote: char| word.strip_prefix(quote)?.strip_suffix(quote);
    let word = quoted('"').or_else(|| quoted('\'')).unwrap_or(word);
    let word = word.strip_suffix(';').unwrap_or(word);
    let plain = word.chars().all(|c| c.is_alphanumeric() || "/._+-@%".contains(c));
    (plain && !word.is_empty() && !SHELL_WORDS.contains(&word)).then(|| word.to_owned())
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_plain_first_word_is_judged() {
        let table = [
            ("opencode serve --port $PORT", Some("opencode")),
            ("exec datasette serve x.db", Some("datasette")),
            ("A=1 B='2' exec python3 -m http.server $PORT", Some("python3")),
            ("'/opt/x/bin/run' --port $PORT", Some("/opt/x/bin/run")),
            ("exec \"$WAKEFUL_BIN\" demo", None),
            ("$SHELL -c x", None),
            ("cd sub && npm start", None),
            ("test -d x || mkdir x; npm start", None),
            ("(npm start)", None),
            ("", None),
        ];
        for (command, word) in table {
            assert_eq!(first_word(command).as_deref(), word, "{command}");
        }
    }

    fn template(command: &str) -> Template {
        serde_json::from_value(serde_json::json!({
            "install": "pip install it",
            "surfaces": { "app": { "command": command } },
        }))
        .unwrap()
    }

    fn program(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_program_that_is_not_installed_is_named_with_the_hint() {
        let dir = tempfile::tempdir().unwrap();
        let reach = Reach::new(dir.path().as_os_str(), None, &[], None);
        let missing = missing_program(&template("datasette serve"), &reach).unwrap();
        assert!(missing.contains("`datasette`") && missing.contains("pip install it"), "{missing}");
        fs::write(dir.path().join("datasette"), "not executable").unwrap();
        assert!(missing_program(&template("datasette serve"), &reach).is_some());
        program(&dir.path().join("datasette"), "x");
        assert_eq!(missing_program(&template("datasette serve"), &reach), None);
        assert_eq!(missing_program(&template("bin/own-program"), &reach), None);
        assert!(missing_program(&template("/nonexistent/x"), &reach).is_some());
        let mut needy = template("set --; exec something");
        needy.needs = vec!["datasette".to_owned()];
        assert_eq!(missing_program(&needy, &reach), None);
        needy.needs.push("opencode".to_owned());
        let missing = missing_program(&needy, &reach).unwrap();
        assert!(missing.contains("opencode") && missing.contains("pip install it"), "{missing}");
    }

    #[test]
    fn what_stands_around_a_directory_of_the_path_is_in_reach_unless_it_holds_secrets() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        for name in ["home/me", "srv/data"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        symlink("home", at("link")).unwrap();
        let (home, data) = (at("home/me"), at("srv/data"));
        let table = [
            ("home/me/.pyenv/shims", Some("home/me/.pyenv")),
            ("home/me/.pyenv/bin", None),
            ("home/me/.pyenv/versions/3.12/bin", Some("home/me/.pyenv/versions/3.12")),
            ("home/me/.local/bin", None),
            ("link/me/.local/bin", None),
            ("home/me/bin", None),
            ("home/me/shims", None),
            ("link/me/shims", None),
            ("home/bin", None),
            ("srv/bin", None),
            ("srv/tool/bin", Some("srv/tool")),
            ("srv/tool/sbin", None),
        ];
        for (entry, expected) in table {
            fs::create_dir_all(at(entry)).unwrap();
            let reach = Reach::new(at(entry).as_os_str(), Some(&home), &[&data], None);
            let expected: Vec<_> = expected.iter().map(|name| at(name)).collect();
            assert_eq!(reach.around, expected, "{entry}");
            let reach = Reach::new(at(entry).as_os_str(), None, &[], None);
            assert!(reach.around.is_empty(), "{entry}, of an unknown home");
        }
        let reach = Reach::new(OsStr::new("/bin:/shims:/:relative/shims"), Some(&home), &[], None);
        assert!(reach.around.is_empty());
    }

    #[test]
    fn a_program_beside_a_shim_is_in_reach() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        program(&at("home/.pyenv/shims/python3"), "#!/bin/sh\n");
        fs::create_dir_all(at("home/other/bin")).unwrap();
        let path = at("home/.pyenv/shims");
        let reach = Reach::new(path.as_os_str(), Some(&at("home")), &[], Some(Vec::new()));
        assert_eq!(missing_program(&template("python3 -m x"), &reach), None);
        assert!(reach.of_path().any(|path| path.ends_with(".pyenv")));
        assert!(!reach.can_read(&at("home/other").canonicalize().unwrap()));
    }

    #[test]
    fn a_program_out_of_a_sandboxs_reach_is_told_with_what_to_add() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        // A link from a directory of the path to somewhere else.
        program(&at("lib/tool/main"), "x");
        fs::create_dir(at("bin")).unwrap();
        symlink("../lib/tool/main", at("bin/tool")).unwrap();
        // A script whose interpreter lies somewhere else.
        program(&at("python/bin/python3"), "x");
        program(&at("bin/script"), &format!("#!{}\n", at("python/bin/python3").display()));
        // The same by way of `env`, which finds the link.
        program(&at("bin/through-env"), "#!/usr/bin/env -S tool --x\n");
        // A virtual environment whose programs are on the path, and its libraries are not.
        program(&at("venv/bin/app"), "#!/bin/sh\n");
        fs::write(at("venv/pyvenv.cfg"), "").unwrap();

        // A shim, beside what it starts.
        program(&at("env/shims/shim"), "#!/bin/sh\n");

        let path = std::env::join_paths([at("bin"), at("venv/bin"), at("env/shims")]).unwrap();
        let missing = |command: &str, readable: Option<&[&str]>| {
            let readable = readable.map(|names| names.iter().map(|name| at(name)).collect());
            missing_program(&template(command), &Reach::new(&path, None, &[], readable))
        };
        let table = [
            ("tool", "lib/tool/main", "lib"),
            ("script", "python/bin/python3", "python"),
            ("through-env", "lib/tool/main", "lib/tool"),
            ("app", "venv", "venv"),
            ("shim", "env", "env"),
        ];
        for (command, outside, add) in table {
            let told = missing(command, Some(&[])).unwrap_or_else(|| panic!("{command}"));
            let outside = at(outside).canonicalize().unwrap();
            assert!(told.contains(&format!("needs {},", outside.display())), "{told}");
            assert_eq!(missing(command, Some(&[add])), None, "{command}");
            assert_eq!(missing(command, None), None, "without Landlock everything is in reach");
        }
        assert_eq!(
            missing_program(
                &template("sh"),
                &Reach::new(OsStr::new("/bin"), None, &[], Some(vec![]))
            ),
            None
        );
    }
}
