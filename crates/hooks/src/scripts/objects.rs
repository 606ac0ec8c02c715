//! How a script sees what it is lent: `request` and `response` with their members. All of them are handles on one exchange,
//! so a change counts whether it is written back or not.

use std::sync::Arc;

use crate::{
    ContextEntries, Exchange, Stage,
    entries::{home, visible},
};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use rhai::{Array, Dynamic, Engine, EvalAltResult, FnPtr, INT, ImmutableString, NativeCallContext};

use super::{
    body::{self, Body},
    exchange::Lent,
    values::{Status, from_json, is_written_as, status, to_raw, wrong},
};

type Result<T> = std::result::Result<T, Box<EvalAltResult>>;

/// `request` and `response`.
#[derive(Clone, Debug)]
pub(crate) struct Message(pub(crate) Lent);

/// `request.subgraph`.
#[derive(Clone, Debug)]
struct SubgraphRequest(Lent);

/// Headers; of the client's request where something else is looked at.
#[derive(Clone, Debug)]
struct Headers(Lent, Of);

/// A URL.
#[derive(Clone, Debug)]
struct Address(Lent, Of);

/// `context`.
#[derive(Clone, Debug)]
struct Context(Lent);

/// Whose headers or URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    /// Of the client's request, beside a request to a subgraph: nothing to be changed.
    Client,
    /// What the stage is about.
    Stage,
}

/// Most names of headers of one message.
const NAMES_MAX: usize = 1_000;

/// Adds all of them.
pub(crate) fn register(engine: &mut Engine) {
    messages(engine);
    headers(engine);
    addresses(engine);
    body::register(engine);
    contexts(engine);
    statuses(engine);
}

impl Message {
    fn of(&self) -> Of {
        if self.0.look().stage == Stage::SubgraphRequest {
            Of::Client
        } else {
            Of::Stage
        }
    }
}

fn messages(engine: &mut Engine) {
    engine
        .register_type_with_name::<Message>("Message")
        .register_type_with_name::<SubgraphRequest>("SubgraphRequest")
        .register_get("headers", |m: &mut Message| -> Result<Headers> {
            m.has_head()?;
            Ok(Headers(m.0.clone(), m.of()))
        })
        .register_get("context", |m: &mut Message| Context(m.0.clone()))
        .register_get("body", |m: &mut Message| -> Result<Body> {
            match m.of() {
                Of::Stage => Ok(Body(m.0.clone())),
                Of::Client => Err(wrong(
                    "the client's body is not lent here; what the subgraph is sent is `request.subgraph.body`",
                )),
            }
        })
        .register_get("uri", |m: &mut Message| Address(m.0.clone(), m.of()))
        .register_get("method", |m: &mut Message| m.0.look().client.method.as_str().to_owned())
        .register_get("id", |m: &mut Message| m.0.look().id.to_string())
        .register_get("subgraph_request_id", |m: &mut Message| {
            m.0.look().subgraph_request_id.as_deref().unwrap_or_default().to_owned()
        })
        .register_get("subgraph", |m: &mut Message| -> Result<SubgraphRequest> {
            if m.0.look().stage == Stage::SubgraphRequest {
                return Ok(SubgraphRequest(m.0.clone()));
            }
            Err(wrong(
                "`subgraph` is there in requests of `subgraph_service`",
            ))
        })
        .register_get("status_code", |m: &mut Message| Status(m.0.look().status.unwrap_or(200)))
        .register_set("status_code", |m: &mut Message, code: Status| {
            m.set_status(code)
        })
        .register_set("status_code", |m: &mut Message, code: INT| -> Result<()> {
            m.set_status(status(code)?)
        })
        .register_fn("is_primary", |m: &mut Message| m.0.look().is_first)
        .register_get("has_next", |m: &mut Message| m.0.look().has_next.unwrap_or(false))
        .register_get("headers", |s: &mut SubgraphRequest| {
            Headers(s.0.clone(), Of::Stage)
        })
        .register_get("body", |s: &mut SubgraphRequest| Body(s.0.clone()))
        .register_get("uri", |s: &mut SubgraphRequest| {
            Address(s.0.clone(), Of::Stage)
        })
        .register_get("method", |_: &mut SubgraphRequest| "POST".to_owned());
    writing_back(engine);
}

/// What a method was called on is written back by the language to where it came from, whether the method has changed it or not:
/// `request.headers["cookie"].split(";")` sets that header to what it is. So everything that can be set takes what is there as
/// no change, also where nothing can be changed. Members are handles, so nothing is to be done here; without this the language
/// would look for it in vain, which takes longer than the change itself.
fn writing_back(engine: &mut Engine) {
    fn same(own: &Lent, written: &Lent) -> Result<()> {
        if Arc::ptr_eq(&own.0, &written.0) {
            return Ok(());
        }
        Err(wrong("this is of another message; change its members"))
    }
    engine
        .register_set("headers", |m: &mut Message, written: Headers| {
            if m.of() != written.1 {
                return Err(wrong("these are headers of another message"));
            }
            same(&m.0, &written.0)
        })
        .register_set("context", |m: &mut Message, written: Context| {
            same(&m.0, &written.0)
        })
        .register_set("body", |m: &mut Message, written: Body| {
            same(&m.0, &written.0)
        })
        .register_set("uri", |m: &mut Message, written: Address| {
            if m.of() != written.1 {
                return Err(wrong("this is the URL of another message"));
            }
            same(&m.0, &written.0)
        })
        .register_set("subgraph", |m: &mut Message, written: SubgraphRequest| {
            same(&m.0, &written.0)
        })
        .register_set("headers", |s: &mut SubgraphRequest, written: Headers| {
            if written.1 == Of::Client {
                return Err(wrong("these are headers of another message"));
            }
            same(&s.0, &written.0)
        })
        .register_set("body", |s: &mut SubgraphRequest, written: Body| {
            same(&s.0, &written.0)
        })
        .register_set("uri", |s: &mut SubgraphRequest, written: Address| {
            if written.1 == Of::Client {
                return Err(wrong("this is the URL of another message"));
            }
            same(&s.0, &written.0)
        });
}

impl Message {
    /// An error for a part that comes after the first: the head has left with that.
    fn has_head(&self) -> Result<()> {
        if self.0.look().is_first {
            return Ok(());
        }
        Err(wrong(
            "headers and status of a response are there in its first part only: see `is_primary()`",
        ))
    }
    fn set_status(&self, code: Status) -> Result<()> {
        self.has_head()?;
        let mut exchange = self.0.look();
        exchange.status = Some(code.0);
        exchange.changes.status = true;
        Ok(())
    }
}

impl Headers {
    fn read<T>(&self, read: impl FnOnce(&HeaderMap) -> T) -> T {
        let exchange = self.0.look();
        match self.1 {
            Of::Client => read(&exchange.client.headers),
            Of::Stage => read(&exchange.headers),
        }
    }
    /// Whether a header has this value already, and no other.
    fn says(&self, name: &str, value: &str) -> bool {
        self.read(|headers| {
            let mut values = headers.get_all(name).iter();
            let first = values.next().map(HeaderValue::as_bytes);
            first.is_some_and(|first| *String::from_utf8_lossy(first) == *value)
                && values.next().is_none()
        })
    }
    fn change(&self, change: impl FnOnce(&mut HeaderMap)) -> Result<()> {
        if self.1 == Of::Client {
            return Err(wrong(
                "these headers are those of the client; change `request.subgraph.headers`",
            ));
        }
        let mut exchange = self.0.look();
        exchange.changes.headers = true;
        change(Arc::make_mut(&mut exchange.headers));
        Ok(())
    }
    fn set(&self, name: &str, values: &[&str]) -> Result<()> {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| wrong(format!("`{name}` is no name of a header")))?;
        let values: std::result::Result<Vec<HeaderValue>, _> = values
            .iter()
            .map(|value| HeaderValue::from_str(value))
            .collect();
        let values = values.map_err(|_| wrong(format!("`{name}` cannot have this value")))?;
        // Tables of headers have an end.
        if self.read(|headers| headers.keys_len() >= NAMES_MAX && !headers.contains_key(&name)) {
            return Err(wrong(format!("at most {NAMES_MAX} headers are taken")));
        }
        self.change(|headers| {
            headers.remove(&name);
            for value in values {
                headers.append(&name, value);
            }
        })
    }
    fn values(&self, name: &str) -> Vec<String> {
        self.read(|headers| {
            let values = headers.get_all(name).iter();
            values
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
                .collect()
        })
    }
}

fn headers(engine: &mut Engine) {
    engine
        .register_type_with_name::<Headers>("Headers")
        .register_indexer_get(|h: &mut Headers, name: &str| -> Result<String> {
            let first = h.values(name).into_iter().next();
            first.ok_or_else(|| wrong(format!("there is no header `{name}`")))
        })
        .register_indexer_set(|h: &mut Headers, name: &str, value: &str| {
            if h.says(name, value) {
                Ok(())
            } else {
                h.set(name, &[value])
            }
        })
        .register_indexer_set(|h: &mut Headers, name: &str, values: Array| {
            let values: Vec<String> = values.iter().map(Dynamic::to_string).collect();
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            h.set(name, &values)
        })
        .register_fn("contains", |h: &mut Headers, name: &str| {
            !h.values(name).is_empty()
        })
        .register_fn("values", |h: &mut Headers, name: &str| {
            h.values(name)
                .into_iter()
                .map(Dynamic::from)
                .collect::<Array>()
        })
        .register_fn("keys", |h: &mut Headers| {
            h.read(|headers| {
                let names = headers.keys();
                names
                    .map(|name| name.as_str().to_owned().into())
                    .collect::<Array>()
            })
        })
        .register_fn("len", |h: &mut Headers| {
            h.read(|headers| headers.keys_len() as INT)
        })
        .register_fn("remove", |h: &mut Headers, name: &str| -> Result<Dynamic> {
            let before = h.values(name).into_iter().next();
            h.change(|headers| {
                headers.remove(name);
            })?;
            Ok(before.map_or(Dynamic::UNIT, Dynamic::from))
        })
        .register_fn("to_string", |h: &mut Headers| {
            h.read(|headers| {
                let names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
                names.join(", ")
            })
        });
}

impl Address {
    fn text(&self) -> String {
        let exchange = self.0.look();
        match self.1 {
            Of::Stage => exchange.uri().to_owned(),
            Of::Client => exchange.client.path.as_ref().to_owned(),
        }
    }
    fn parts(&self) -> http::uri::Parts {
        let uri = self.text();
        uri.parse::<Uri>().unwrap_or_default().into_parts()
    }
    fn change(&self, change: impl FnOnce(&mut http::uri::Parts) -> Option<()>) -> Result<()> {
        let malformed = || wrong("this is no URL");
        let mut parts = self.parts();
        let before = Uri::from_parts(self.parts()).unwrap_or_default();
        change(&mut parts).ok_or_else(malformed)?;
        let uri = Uri::from_parts(parts).map_err(|_| malformed())?;
        if uri == before {
            return Ok(());
        }
        if self.1 == Of::Client {
            return Err(wrong(
                "this is the URL of the client's request; change `request.subgraph.uri`",
            ));
        }
        let mut exchange = self.0.look();
        exchange.uri = Some(uri.to_string().into());
        exchange.changes.uri = true;
        Ok(())
    }
    fn set_host(&self, host: &str, port: Option<u16>) -> Result<()> {
        self.change(|parts| {
            let authority = match port {
                Some(port) => format!("{host}:{port}"),
                None => host.to_owned(),
            };
            parts.authority = Some(authority.parse().ok()?);
            Some(())
        })
    }
}

fn addresses(engine: &mut Engine) {
    let host = |a: &mut Address| a.parts().authority.map(|one| one.host().to_owned());
    let port = |a: &mut Address| a.parts().authority.and_then(|one| one.port_u16());
    let optional = |text: Option<String>| text.map_or(Dynamic::UNIT, Dynamic::from);
    engine
        .register_type_with_name::<Address>("Uri")
        .register_get("host", move |a: &mut Address| optional(host(a)))
        .register_set("host", move |a: &mut Address, name: &str| {
            let port = port(a);
            a.set_host(name, port)
        })
        .register_get("port", move |a: &mut Address| {
            port(a).map_or(Dynamic::UNIT, |port| INT::from(port).into())
        })
        .register_set("port", move |a: &mut Address, port: INT| -> Result<()> {
            let port = u16::try_from(port).map_err(|_| wrong("this is no port"))?;
            let host = host(a).unwrap_or_default();
            a.set_host(&host, Some(port))
        })
        .register_get("scheme", move |a: &mut Address| {
            optional(a.parts().scheme.map(|scheme| scheme.to_string()))
        })
        .register_set("scheme", |a: &mut Address, scheme: &str| {
            a.change(|parts| {
                parts.scheme = Some(scheme.parse().ok()?);
                Some(())
            })
        })
        .register_get("path", |a: &mut Address| {
            let path = a.parts().path_and_query;
            path.map_or_else(String::new, |path| path.path().to_owned())
        })
        .register_set("path", |a: &mut Address, path: &str| {
            a.change(|parts| {
                // What the URL asks besides stays, such as a key.
                let query = parts.path_and_query.as_ref().and_then(|path| path.query());
                let path = match query {
                    Some(query) if !path.contains('?') => format!("{path}?{query}"),
                    _ => path.to_owned(),
                };
                parts.path_and_query = Some(path.parse().ok()?);
                Some(())
            })
        })
        .register_get("query", move |a: &mut Address| {
            let path = a.parts().path_and_query;
            optional(path.and_then(|path| path.query().map(str::to_owned)))
        })
        .register_fn("to_string", |a: &mut Address| a.text());
}

impl Context {
    fn get(&self, name: &str) -> Result<Dynamic> {
        let exchange = self.0.look();
        match visible(&exchange.context, exchange.own.as_ref(), name) {
            Some(value) => from_json(value.get()),
            None => Ok(Dynamic::UNIT),
        }
    }
    fn entries<T>(&self, name: &str, change: impl FnOnce(&mut ContextEntries) -> T) -> T {
        let mut exchange = self.0.look();
        let exchange: &mut Exchange = &mut exchange;
        change(home(&mut exchange.context, exchange.own.as_mut(), name))
    }
    fn set(&self, name: &str, value: &Dynamic) -> Result<()> {
        if value.is_unit() {
            self.entries(name, |entries| entries.remove(name));
            return Ok(());
        }
        let value = to_raw(value)?;
        let is_there = {
            let exchange = self.0.look();
            let there = visible(&exchange.context, exchange.own.as_ref(), name);
            there.is_some_and(|there| is_written_as(there.get(), value.get()))
        };
        if is_there {
            return Ok(());
        }
        self.entries(name, |entries| entries.set(name, value))
            .map_err(|error| wrong(error.to_string()))
    }
}

fn contexts(engine: &mut Engine) {
    engine
        .register_type_with_name::<Context>("Context")
        .register_indexer_get(|c: &mut Context, name: &str| c.get(name))
        .register_indexer_set(|c: &mut Context, name: &str, value: Dynamic| c.set(name, &value))
        .register_fn("get", |c: &mut Context, name: &str| c.get(name))
        .register_fn("insert", |c: &mut Context, name: &str, value: Dynamic| {
            c.set(name, &value)
        })
        .register_fn("contains", |c: &mut Context, name: &str| {
            c.get(name).map(|value| !value.is_unit())
        })
        .register_fn("remove", |c: &mut Context, name: &str| {
            c.set(name, &Dynamic::UNIT)
        })
        .register_fn(
            "upsert",
            |call: NativeCallContext<'_>,
             c: &mut Context,
             name: ImmutableString,
             make: FnPtr|
             -> Result<()> {
                let before = c.get(&name)?;
                let value: Dynamic = make.call_within_context(&call, (before,))?;
                c.set(&name, &value)
            },
        );
}

fn statuses(engine: &mut Engine) {
    engine
        .register_type_with_name::<Status>("StatusCode")
        .register_fn("to_string", |s: &mut Status| s.0.to_string())
        .register_fn("to_int", |s: &mut Status| INT::from(s.0))
        .register_fn("==", |a: Status, b: Status| a == b)
        .register_fn("!=", |a: Status, b: Status| a != b)
        .register_fn("==", |a: Status, b: INT| INT::from(a.0) == b)
        .register_fn("!=", |a: Status, b: INT| INT::from(a.0) != b)
        .register_fn(">=", |a: Status, b: INT| INT::from(a.0) >= b)
        .register_fn("<=", |a: Status, b: INT| INT::from(a.0) <= b)
        .register_fn(">", |a: Status, b: INT| INT::from(a.0) > b)
        .register_fn("<", |a: Status, b: INT| INT::from(a.0) < b);
}
