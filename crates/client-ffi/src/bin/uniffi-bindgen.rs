//! Generates the bindings of another language from the built library:
//! `uniffi-bindgen LANGUAGE LIBRARY DIRECTORY`, where the language is `python`, `kotlin` or `swift`.

use anyhow::{Context as _, bail};
use uniffi::{GenerateOptions, TargetLanguage, generate};

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let (Some(language), Some(library), Some(directory), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        bail!("usage: uniffi-bindgen LANGUAGE LIBRARY DIRECTORY");
    };
    let language = match language.as_str() {
        "kotlin" => TargetLanguage::Kotlin,
        "python" => TargetLanguage::Python,
        "swift" => TargetLanguage::Swift,
        other => bail!("no bindings are made for `{other}`"),
    };
    let options = GenerateOptions {
        languages: vec![language],
        source: library.into(),
        out_dir: directory.into(),
        config_override: None,
        format: false,
        crate_filter: None,
        metadata_no_deps: true,
    };
    generate(options).context("the bindings cannot be generated")
}
