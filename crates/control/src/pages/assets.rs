//! The stylesheet, the script and the icon, embedded. Their addresses change with their content, so
//! a browser may keep them for good.

use std::sync::LazyLock;

use axum::{
    Router,
    extract::Path,
    response::{IntoResponse, Response},
    routing,
};
use http::{HeaderMap, StatusCode, header};
use sha2::{Digest as _, Sha256};
use wakeful_wire::Code;

use crate::api::{AppState, Refusal};

struct Asset {
    stem: &'static str,
    extension: &'static str,
    media_type: &'static str,
    text: &'static str,
    /// The beginning of the content's hash.
    version: String,
}

impl Asset {
    fn new(
        stem: &'static str,
        extension: &'static str,
        media_type: &'static str,
        text: &'static str,
    ) -> Self {
        let hash = Sha256::digest(text.as_bytes());
        let version = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        Self { stem, extension, media_type, text, version }
    }

    fn file(&self) -> String {
        format!("{}-{}.{}", self.stem, self.version, self.extension)
    }

    fn address(&self) -> String {
        format!("/.wakeful/assets/{}", self.file())
    }
}

static ASSETS: LazyLock<[Asset; 3]> = LazyLock::new(|| {
    [
        Asset::new("style", "css", "text/css; charset=utf-8", include_str!("assets/style.css")),
        Asset::new("live", "js", "text/javascript; charset=utf-8", include_str!("assets/live.js")),
        Asset::new("icon", "svg", "image/svg+xml", include_str!("assets/icon.svg")),
    ]
});

/// The address of the stylesheet.
pub(super) fn stylesheet() -> String {
    ASSETS[0].address()
}

/// The address of the script.
pub(super) fn script() -> String {
    ASSETS[1].address()
}

/// The address of the icon.
pub(super) fn icon() -> String {
    ASSETS[2].address()
}

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/.wakeful/assets/{file}", routing::get(asset))
        .route("/favicon.ico", routing::get(async || serve(&ASSETS[2], &HeaderMap::new())))
}

async fn asset(Path(file): Path<String>, headers: HeaderMap) -> Result<Response, Refusal> {
    let asset = ASSETS.iter().find(|asset| asset.file() == file);
    asset.map(|asset| serve(asset, &headers)).ok_or_else(|| Refusal::new(Code::NotFound))
}

fn serve(asset: &'static Asset, headers: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", asset.version);
    let lasting = "public, max-age=31536000, immutable";
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|asked| asked == tag.as_str());
    if known {
        let headers = [(header::ETAG, tag.as_str()), (header::CACHE_CONTROL, lasting)];
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    let headers = [
        (header::CONTENT_TYPE, asset.media_type),
        (header::ETAG, tag.as_str()),
        (header::CACHE_CONTROL, lasting),
    ];
    (headers, asset.text).into_response()
}
