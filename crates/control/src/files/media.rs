//! Content types by extension, from a fixed table.

/// The content type of a file by its name; `application/octet-stream` for what is not known.
#[must_use]
pub fn media_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension.to_ascii_lowercase().as_str() {
        "txt" | "log" | "md" | "toml" | "yaml" | "yml" | "ini" | "rs" | "py" | "ts" | "sh" => {
            "text/plain; charset=utf-8"
        }
        "html" | "htm" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "csv" => "text/csv; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" => "application/gzip",
        "tar" => "application/x-tar",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "ico" => "image/x-icon",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "wasm" => "application/wasm",
        "db" | "sqlite" | "sqlite3" => "application/vnd.sqlite3",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_read_without_regard_to_case() {
        assert_eq!(media_type("A.PNG"), "image/png");
        assert_eq!(media_type("archive.tar.gz"), "application/gzip");
        for unknown in ["", "Makefile", "x.", "x.unknown"] {
            assert_eq!(media_type(unknown), "application/octet-stream");
        }
    }
}
