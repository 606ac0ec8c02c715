//! Asking a running subgraph for its schema: `{ _service { sdl } }`, which every federated subgraph answers, else the
//! standard introspection query, whose answer is written as SDL.

use std::{fmt::Write, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use ogive_transport::{ClientTls, ClientTlsOptions, Endpoint, HeaderRules, Http2, Traffic, fetch};
use serde_json::{Value, json};

/// Longest wait for an answer.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// Largest answer, in bytes.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Deepest list of a type that introspection asks for.
const WRAPPED_MAX: usize = 9;

/// What a subgraph answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Its schema, and the entity tag to ask with the next time.
    Sdl {
        /// The schema.
        sdl: String,
        /// `ETag` of the answer.
        etag: Option<String>,
    },
    /// The same as before.
    NotModified,
}

/// Asks for the schema. `etag` is that of the answer before. The error is for people and names no subgraph.
pub async fn introspect(
    url: &str,
    headers: &[(String, String)],
    etag: Option<&str>,
) -> Result<Answer, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`{name}` is no header name"))?;
        let value = HeaderValue::from_str(value)
            .map_err(|_| format!("the value of the header `{name}` cannot be sent"))?;
        map.append(name, value);
    }
    if let Some(etag) = etag.and_then(|e| HeaderValue::from_str(e).ok()) {
        map.insert(header::IF_NONE_MATCH, etag);
    }
    let asked = ask(url, &map, SERVICE).await;
    if let Err(why) = &asked
        && why.ends_with("404")
        && let Some(other) = elsewhere(url)
    {
        // Where most servers listen; whoever gave the address decides.
        return Err(match ask(&other, &map, SERVICE).await {
            Ok(_) => format!("{why}, but {other} answers: give that address"),
            Err(_) => format!("{why}; many servers listen at {other}"),
        });
    }
    let (answer, etag) = match asked? {
        None => return Ok(Answer::NotModified),
        Some(answer) => answer,
    };
    let sdl = answer.pointer("/data/_service/sdl").and_then(Value::as_str);
    if let Some(sdl) = sdl.filter(|sdl| !sdl.trim().is_empty()) {
        let sdl = sdl.to_owned();
        return Ok(Answer::Sdl { sdl, etag });
    }
    // Not federated: any GraphQL server can be a subgraph without entities.
    map.remove(header::IF_NONE_MATCH);
    let Some((plain, _)) = ask(url, &map, QUERY).await? else {
        return Err("it answers 304 to a request without `if-none-match`".into());
    };
    match plain.pointer("/data/__schema") {
        Some(schema) => Ok(Answer::Sdl {
            sdl: sdl_of(schema)?,
            etag: None,
        }),
        None => Err(format!(
            "it answers neither `_service` nor introspection: {}",
            first_error(&plain)
                .or(first_error(&answer))
                .unwrap_or("no data")
        )),
    }
}

const SERVICE: &str = "{ _service { sdl } }";

/// The address with `/graphql` behind it, unless it ends so.
fn elsewhere(url: &str) -> Option<String> {
    let bare = url.trim_end_matches('/');
    (!bare.ends_with("/graphql") && !bare.contains(['?', '#'])).then(|| format!("{bare}/graphql"))
}

fn first_error(answer: &Value) -> Option<&str> {
    answer.pointer("/errors/0/message")?.as_str()
}

/// One exchange; `None` if the server says that nothing changed.
async fn ask(
    url: &str,
    headers: &HeaderMap,
    query: &str,
) -> Result<Option<(Value, Option<String>)>, String> {
    let traffic = Traffic {
        timeout: TIMEOUT,
        response_bytes_max: ANSWER_BYTES_MAX,
        ..Traffic::default()
    };
    let mut endpoint = Endpoint::new("subgraph", url, traffic, HeaderRules::default());
    if url.starts_with("https:") {
        let tls = ClientTls::load(ClientTlsOptions::default(), Http2::default());
        endpoint.tls = Ok(Some(Arc::new(tls.map_err(|error| error.to_string())?)));
    }
    let mut headers = headers.clone();
    let json_type = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json_type);
    let accept = "application/graphql-response+json, application/json;q=0.9";
    headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    let body = Bytes::from(json!({ "query": query }).to_string());
    let answer = fetch(&endpoint, headers, body).await.map_err(|error| {
        if error.detail.is_empty() {
            error.message
        } else {
            error.detail
        }
    })?;
    if answer.status == 304 {
        return Ok(None);
    }
    let parsed: Result<Value, _> = serde_json::from_slice(&answer.body);
    match parsed {
        // Servers without `_service` may answer 400 with errors in JSON.
        Ok(value) if answer.status < 300 || value.get("errors").is_some() => {
            let etag = answer.headers.get(header::ETAG);
            let etag = etag.and_then(|e| e.to_str().ok()).map(str::to_owned);
            Ok(Some((value, etag)))
        }
        _ if answer.status >= 300 => Err(format!("it answers with HTTP status {}", answer.status)),
        _ => Err("its answer is no JSON".into()),
    }
}

const QUERY: &str = "{ __schema { description queryType { name } mutationType { name } subscriptionType { name } \
    directives { name description locations isRepeatable args { ...I } } \
    types { kind name description specifiedByURL fields(includeDeprecated: true) { name description \
    args { ...I } type { ...T } isDeprecated deprecationReason } inputFields { ...I } interfaces { name } \
    enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason } possibleTypes { name } } } } \
    fragment I on __InputValue { name description type { ...T } defaultValue } \
    fragment T on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name \
    ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } }";

/// The SDL of an introspected schema: `__schema` of the answer.
pub fn sdl_of(schema: &Value) -> Result<String, String> {
    let mut out = String::new();
    let root = |key: &str| schema.pointer(&format!("/{key}/name"))?.as_str();
    let roots = [
        ("query", "Query", root("queryType")),
        ("mutation", "Mutation", root("mutationType")),
        ("subscription", "Subscription", root("subscriptionType")),
    ];
    if roots
        .iter()
        .any(|(_, usual, is)| is.is_some_and(|is| is != *usual))
    {
        out.push_str("schema {\n");
        for (kind, _, name) in roots {
            if let Some(name) = name {
                let _ = writeln!(out, "  {kind}: {name}");
            }
        }
        out.push_str("}\n\n");
    }
    for directive in list(schema, "directives") {
        if !matches!(
            text(directive, "name"),
            "skip" | "include" | "deprecated" | "specifiedBy" | "oneOf" | "defer" | "stream"
        ) {
            write_directive(directive, &mut out)?;
        }
    }
    for ty in list(schema, "types") {
        let name = text(ty, "name");
        let specified = matches!(name, "Int" | "Float" | "String" | "Boolean" | "ID");
        if !specified && !name.starts_with("__") {
            write_type(ty, &mut out)?;
        }
    }
    if out.is_empty() {
        return Err("its introspection names no types".into());
    }
    Ok(out)
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    let found = value.get(key).and_then(Value::as_array);
    found.map_or(&[], |list| list)
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn describe(value: &Value, indent: &str, out: &mut String) {
    let description = text(value, "description");
    if !description.is_empty() {
        out.push_str(indent);
        // Writing to a string cannot fail.
        let _ = ogive_schema::value::write_string(description, out);
        out.push('\n');
    }
}

fn write_directive(directive: &Value, out: &mut String) -> Result<(), String> {
    describe(directive, "", out);
    let _ = write!(out, "directive @{}", text(directive, "name"));
    write_arguments(directive, out)?;
    if directive.get("isRepeatable").and_then(Value::as_bool) == Some(true) {
        out.push_str(" repeatable");
    }
    let locations = list(directive, "locations").iter();
    let locations: Vec<&str> = locations.filter_map(Value::as_str).collect();
    let _ = writeln!(out, " on {}\n", locations.join(" | "));
    Ok(())
}

fn write_type(ty: &Value, out: &mut String) -> Result<(), String> {
    describe(ty, "", out);
    let name = text(ty, "name");
    let names =
        |key: &str| -> Vec<&str> { list(ty, key).iter().map(|i| text(i, "name")).collect() };
    match text(ty, "kind") {
        "SCALAR" => {
            let _ = write!(out, "scalar {name}");
            let url = text(ty, "specifiedByURL");
            if !url.is_empty() {
                out.push_str(" @specifiedBy(url: ");
                let _ = ogive_schema::value::write_string(url, out);
                out.push(')');
            }
            out.push('\n');
        }
        kind @ ("OBJECT" | "INTERFACE") => {
            let word = if kind == "OBJECT" {
                "type"
            } else {
                "interface"
            };
            let _ = write!(out, "{word} {name}");
            let interfaces = names("interfaces");
            if !interfaces.is_empty() {
                let _ = write!(out, " implements {}", interfaces.join(" & "));
            }
            out.push_str(" {\n");
            for field in list(ty, "fields") {
                describe(field, "  ", out);
                let _ = write!(out, "  {}", text(field, "name"));
                write_arguments(field, out)?;
                let _ = write!(out, ": {}", type_of(field)?);
                deprecate(field, out);
                out.push('\n');
            }
            out.push_str("}\n");
        }
        "UNION" => {
            let members = names("possibleTypes");
            let _ = writeln!(out, "union {name} = {}", members.join(" | "));
        }
        "ENUM" => {
            let _ = writeln!(out, "enum {name} {{");
            for value in list(ty, "enumValues") {
                describe(value, "  ", out);
                let _ = write!(out, "  {}", text(value, "name"));
                deprecate(value, out);
                out.push('\n');
            }
            out.push_str("}\n");
        }
        "INPUT_OBJECT" => {
            let _ = writeln!(out, "input {name} {{");
            for field in list(ty, "inputFields") {
                describe(field, "  ", out);
                out.push_str("  ");
                write_input(field, out)?;
                out.push('\n');
            }
            out.push_str("}\n");
        }
        other => {
            return Err(format!(
                "its introspection has a type of the kind `{other}`"
            ));
        }
    }
    out.push('\n');
    Ok(())
}

fn write_arguments(owner: &Value, out: &mut String) -> Result<(), String> {
    let args = list(owner, "args");
    if args.is_empty() {
        return Ok(());
    }
    out.push('(');
    for (at, arg) in args.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        if !text(arg, "description").is_empty() {
            let _ = ogive_schema::value::write_string(text(arg, "description"), out);
            out.push(' ');
        }
        write_input(arg, out)?;
    }
    out.push(')');
    Ok(())
}

fn write_input(input: &Value, out: &mut String) -> Result<(), String> {
    let _ = write!(out, "{}: {}", text(input, "name"), type_of(input)?);
    let default = text(input, "defaultValue");
    if !default.is_empty() {
        let _ = write!(out, " = {default}");
    }
    Ok(())
}

fn deprecate(element: &Value, out: &mut String) {
    if element.get("isDeprecated").and_then(Value::as_bool) == Some(true) {
        out.push_str(" @deprecated(reason: ");
        let reason = text(element, "deprecationReason");
        let _ = ogive_schema::value::write_string(reason, out);
        out.push(')');
    }
}

/// The type of a field or input value as written.
fn type_of(element: &Value) -> Result<String, String> {
    let mut wrappers = Vec::new();
    let mut ty = element.get("type");
    for _ in 0..=WRAPPED_MAX {
        let Some(at) = ty else { break };
        match text(at, "kind") {
            "LIST" => wrappers.push('['),
            "NON_NULL" => wrappers.push('!'),
            _ => {
                let mut out = text(at, "name").to_owned();
                for wrapper in wrappers.iter().rev() {
                    match wrapper {
                        '[' => out = format!("[{out}]"),
                        _ => out.push('!'),
                    }
                }
                return Ok(out);
            }
        }
        ty = at.get("ofType").filter(|t| !t.is_null());
    }
    Err(format!(
        "its introspection gives `{}` no type",
        text(element, "name")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn introspection_becomes_sdl() {
        let named = |kind: &str, name: &str| json!({ "kind": kind, "name": name });
        let non_null = |ty: Value| json!({ "kind": "NON_NULL", "ofType": ty });
        let schema = json!({
            "queryType": { "name": "Root" },
            "directives": [{ "name": "skip", "locations": ["FIELD"] },
                { "name": "slow", "locations": ["FIELD", "QUERY"], "isRepeatable": true, "args": [] }],
            "types": [
                { "kind": "OBJECT", "name": "Root", "description": "All\nof it", "interfaces": [], "fields": [
                    { "name": "find", "type": { "kind": "LIST", "ofType": non_null(named("OBJECT", "Root")) },
                      "isDeprecated": true, "deprecationReason": "old", "args": [
                        { "name": "by", "type": non_null(named("INPUT_OBJECT", "By")), "defaultValue": "{ id: 1 }" }] }] },
                { "kind": "INPUT_OBJECT", "name": "By", "inputFields": [{ "name": "id", "type": named("SCALAR", "ID") }] },
                { "kind": "ENUM", "name": "E", "enumValues": [{ "name": "A" }] },
                { "kind": "UNION", "name": "U", "possibleTypes": [{ "name": "Root" }] },
                { "kind": "SCALAR", "name": "Url", "specifiedByURL": "https://url" },
                { "kind": "SCALAR", "name": "ID" },
            ],
        });
        let sdl = sdl_of(&schema).unwrap();
        for part in [
            "schema {\n  query: Root\n}",
            "directive @slow repeatable on FIELD | QUERY",
            "find(by: By! = { id: 1 }): [Root!] @deprecated(reason: \"old\")",
            "input By {\n  id: ID\n}",
            "union U = Root",
            "scalar Url @specifiedBy(url: \"https://url\")",
        ] {
            assert!(sdl.contains(part), "no {part} in\n{sdl}");
        }
        assert!(!sdl.contains("@skip") && !sdl.contains("scalar ID"));
        let parsed = ogive_syntax::parse(
            &*sdl,
            ogive_base::SourceId(0),
            &ogive_syntax::Limits::default(),
        );
        assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
    }

    /// A server that gives one scripted answer per connection, and keeps what it was asked.
    async fn server(answers: Vec<String>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/graphql", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            let mut asked = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut text = Vec::new();
                let mut buffer = [0; 4096];
                // A request is whole when its body is valid JSON.
                loop {
                    let n = stream.read(&mut buffer).await.unwrap();
                    assert!(n > 0, "the request ended early");
                    text.extend_from_slice(&buffer[..n]);
                    let whole = String::from_utf8_lossy(&text);
                    let body = whole.split_once("\r\n\r\n").map_or("", |(_, body)| body);
                    if serde_json::from_str::<Value>(body).is_ok() {
                        break;
                    }
                }
                asked.push(String::from_utf8(text).unwrap());
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            asked
        });
        (url, serving)
    }

    fn http(status: &str, headers: &str, body: &str) -> String {
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
    }

    #[tokio::test]
    async fn entity_tags_save_unchanged_answers() {
        let body =
            json!({ "data": { "_service": { "sdl": "type Query { a: Int }" } } }).to_string();
        let (url, serving) = server(vec![
            http("200 OK", "etag: \"v1\"\r\n", &body),
            http("304 Not Modified", "", ""),
        ])
        .await;
        let headers = [("authorization".to_owned(), "Bearer x".to_owned())];
        let first = introspect(&url, &headers, None).await.unwrap();
        let etag = match &first {
            Answer::Sdl { sdl, etag } if sdl == "type Query { a: Int }" => etag.clone(),
            other => panic!("{other:?}"),
        };
        let second = introspect(&url, &headers, etag.as_deref()).await;
        assert_eq!(second, Ok(Answer::NotModified));
        let asked = serving.await.unwrap();
        assert!(asked[0].contains("authorization: Bearer x") && asked[0].contains("_service"));
        assert!(!asked[0].contains("if-none-match") && asked[1].contains("if-none-match: \"v1\""));
    }

    #[tokio::test]
    async fn plain_servers_are_introspected_and_odd_ones_refused() {
        let none = json!({ "errors": [{ "message": "no field `_service`" }] }).to_string();
        let types = json!([{ "kind": "OBJECT", "name": "Query", "fields": [
            { "name": "a", "args": [], "type": { "kind": "SCALAR", "name": "Int" } }] }]);
        let schema =
            json!({ "data": { "__schema": { "queryType": { "name": "Query" }, "types": types } } });
        let (url, serving) = server(vec![
            http("400 Bad Request", "", &none),
            http("200 OK", "", &schema.to_string()),
        ])
        .await;
        match introspect(&url, &[], None).await {
            Ok(Answer::Sdl { sdl, etag: None }) => {
                assert_eq!(sdl.trim(), "type Query {\n  a: Int\n}")
            }
            other => panic!("{other:?}"),
        }
        serving.await.unwrap();
        for (answers, wanted) in [
            (vec![http("200 OK", "", "<html>")], "its answer is no JSON"),
            (
                vec![http("503 Service Unavailable", "", "busy")],
                "it answers with HTTP status 503",
            ),
            (
                vec![http("200 OK", "", &none), http("200 OK", "", &none)],
                "it answers neither `_service` nor introspection: no field `_service`",
            ),
        ] {
            let (url, serving) = server(answers).await;
            assert_eq!(introspect(&url, &[], None).await, Err(wanted.to_owned()));
            serving.await.unwrap();
        }
        let wrong = introspect("http://127.0.0.1:1/", &[("a b".into(), "c".into())], None).await;
        assert_eq!(wrong, Err("`a b` is no header name".to_owned()));
    }
}
