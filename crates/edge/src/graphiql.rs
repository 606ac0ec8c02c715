//! GraphiQL, served from the binary: a page and its assets, no network needed.
//!
//! The assets are the published builds of `graphiql` and `react` (see `assets/NOTICE.md`), kept gzip-compressed; every
//! browser reads that, so they are served as they are.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

use ogive_base::escape_markup;
use ogive_server::ResponseBody;

/// Where the assets are; the version is part of the path, so they can be cached forever. The last part counts changes of
/// our own script.
const PREFIX: &str = "/__graphiql/3.9.0-3/";

/// Where the page learns what the gateway offers ([`offered`]).
pub const STATE: &str = "/__ogive/graphiql";

const ASSETS: [(&str, &str, &[u8]); 5] = [
    (
        "graphiql.css",
        "text/css; charset=utf-8",
        include_bytes!("../assets/graphiql.css.gz"),
    ),
    (
        "graphiql.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/graphiql.js.gz"),
    ),
    (
        "react.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/react.js.gz"),
    ),
    (
        "react-dom.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/react-dom.js.gz"),
    ),
    (
        "start.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/start.js"),
    ),
];

/// Nothing from elsewhere: the page works without a network, and no injected markup can call out.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'self'";

/// The page. `endpoint` is where operations go, `query` what the editor shows first.
/// `diagnostics` tells whether it shows what composition has to say.
pub fn page(endpoint: &str, query: Option<&str>, diagnostics: bool) -> Response<ResponseBody> {
    let html = include_str!("../assets/graphiql.html")
        .replace("{{assets}}", PREFIX)
        .replace("{{endpoint}}", &escape_markup(endpoint))
        .replace("{{state}}", STATE)
        .replace(
            "{{notice}}",
            if diagnostics {
                crate::dev_diagnostics::PATH
            } else {
                ""
            },
        )
        .replace("{{query}}", &escape_markup(query.unwrap_or_default()));
    let mut response = whole("text/html; charset=utf-8", html.into());
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(POLICY),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

/// What the page can show. `schema` is another text with every other schema.
pub fn offered(
    schema: &str,
    introspection: bool,
    plan: Option<&str>,
    trace: Option<&str>,
) -> Response<ResponseBody> {
    let text = |text: Option<&str>| {
        let mut out = Vec::new();
        match text {
            Some(text) => ogive_json::write_string(&mut out, text),
            None => out.extend_from_slice(b"null"),
        }
        String::from_utf8(out).unwrap_or_default()
    };
    let json = format!(
        "{{\"schema\":{},\"introspection\":{introspection},\"plan\":{},\"trace\":{}}}",
        text(Some(schema)),
        text(plan),
        text(trace)
    );
    let mut response = whole("application/json; charset=utf-8", json.into());
    let no_store = HeaderValue::from_static("no-store");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, no_store);
    response
}

/// The asset at `path`, if there is one.
pub fn asset(path: &str) -> Option<Response<ResponseBody>> {
    let name = path.strip_prefix(PREFIX)?;
    let (_, media, bytes) = ASSETS.iter().find(|(n, ..)| *n == name)?;
    let mut response = whole(media, Bytes::from_static(bytes));
    let headers = response.headers_mut();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=31536000, immutable"),
    );
    Some(response)
}

fn whole(media: &'static str, bytes: Bytes) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(bytes));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}
