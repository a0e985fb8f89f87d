//! The bindings as an application has them: generated for Python from the built library, and driven
//! against a real host.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// The program whose `envd` is the host.
const PROGRAM: &str = "WAKEFUL_PROGRAM";

const HOW: &str = "`cargo xtask test` runs this with the programs that it needs. By hand:
  cargo build --package wakeful
  WAKEFUL_PROGRAM=$PWD/target/debug/wakeful cargo nextest run --package wakeful \\
    --package wakeful-client-ffi --features wakeful-client-ffi/bindgen --test python \\
    --run-ignored only";

/// Where cargo put the library when it built this test. What lies a directory higher may be of an
/// earlier build.
fn library() -> PathBuf {
    let name = format!("{}wakeful_client_ffi{}", env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    env::current_exe().unwrap().with_file_name(name)
}

/// The generator, which is built with this test as well.
fn bindgen() -> PathBuf {
    let test = env::current_exe().unwrap();
    let name = format!("uniffi-bindgen{}", env::consts::EXE_SUFFIX);
    test.ancestors().nth(2).unwrap().join(name)
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (said(&output.stdout), said(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{errors}", output.status);
}

fn file(path: PathBuf) -> PathBuf {
    assert!(path.is_file(), "{} is missing. {HOW}", path.display());
    path
}

#[test]
#[ignore = "needs the program and the bindings' generator, which `cargo xtask test` builds"]
fn an_application_in_python_lives_with_a_host_that_comes_and_goes() {
    let program = env::var_os(PROGRAM).unwrap_or_else(|| panic!("{PROGRAM} is not set. {HOW}"));
    let program = file(PathBuf::from(program));
    let (library, bindgen) = (file(library()), file(bindgen()));
    // Its path is short: the host has a socket below it.
    let directory = tempfile::Builder::new().prefix("wkpy").tempdir_in("/tmp").unwrap();
    let bindings = directory.path().join("bindings");
    std::fs::create_dir(&bindings).unwrap();
    // A copy: another build may write cargo's own while this runs.
    let copy = bindings.join(library.file_name().unwrap());
    std::fs::copy(&library, &copy).unwrap();
    run(Command::new(bindgen).arg("python").arg(&copy).arg(&bindings));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/journey.py");
    run(Command::new("python3")
        .arg("-X")
        .arg("faulthandler")
        .arg(script)
        .arg(program)
        .arg(directory.path())
        .env("PYTHONPATH", &bindings)
        .env("PYTHONDONTWRITEBYTECODE", "1"));
}
