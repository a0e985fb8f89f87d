//! The attribute of a test that runs in a browser's page; `wakeful-page-test` says how.

use proc_macro::{Delimiter, Span, TokenStream, TokenTree};

/// What the page cannot do, and what it would mean to leave it out silently.
const UNKNOWN: &[&str] = &["should_panic", "ignore"];

/// Makes a function without arguments a test of the page.
///
/// The function stays as it is. Beside it stands an export that hands it to
/// `wakeful_page_test::run`, named by its place in the source, which no two share.
///
/// # Errors
///
/// Does not compile on what is no function, and beside `#[should_panic]` or `#[ignore]`.
#[proc_macro_attribute]
pub fn test(_: TokenStream, function: TokenStream) -> TokenStream {
    let mut made = function.clone();
    made.extend(
        match name(function) {
            Ok(name) => export(&name),
            Err(problem) => format!("::core::compile_error!({problem:?});"),
        }
        .parse::<TokenStream>(),
    );
    made
}

/// The name of the function.
fn name(function: TokenStream) -> Result<String, String> {
    let mut tokens = function.into_iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
                let attribute = group.stream().into_iter().next().map(|token| token.to_string());
                if let Some(unknown) = attribute.filter(|name| UNKNOWN.contains(&name.as_str())) {
                    return Err(format!("#[{unknown}] is unknown to tests in a page"));
                }
            }
            TokenTree::Ident(word) if word.to_string() == "fn" => {
                let name = tokens.next().ok_or("a function has a name")?;
                return Ok(name.to_string());
            }
            TokenTree::Ident(_)
            | TokenTree::Group(_)
            | TokenTree::Punct(_)
            | TokenTree::Literal(_) => {}
        }
    }
    Err("only a function is a test".to_owned())
}

fn export(name: &str) -> String {
    let place = Span::call_site();
    let export = format!("test {}:{} {name}", place.file(), place.line());
    format!(
        "const _: () = {{
            #[expect(unsafe_code, reason = \"the page finds tests by what the module exports\")]
            #[unsafe(export_name = {export:?})]
            extern \"C\" fn exported() {{
                let path = ::core::concat!(::core::module_path!(), \"::\", {name:?});
                ::wakeful_page_test::run(path, {name});
            }}
        }};"
    )
}
