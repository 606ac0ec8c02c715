//! What components import, and what is lent to the instance that is called.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use ogive_failure::codes;
use ogive_json::Scanner;
use serde_json::value::RawValue;
use wasmtime::{
    Engine, ResourceLimiter, Result, StoreContextMut,
    component::{ComponentType, Lift, Linker, LinkerInstance},
};

use super::{
    error::bounded,
    options::{ComponentOptions, Limits, Permissions},
    outgoing::{Refused, Sender, may_go},
};
use crate::{
    Body, Break, CallError, ContextEntries, CoprocessorError, Exchange, Stage,
    entries::{CONTEXT_BYTES_MAX, home, visible},
    headers::kept,
    reply::BODY_DEPTH_MAX,
};

mod requests;

use requests::Requests;

/// Most header values of an exchange after a component has added some.
const HEADERS_MAX: usize = 500;
/// Most bytes of header values that a call writes.
const HEADER_BYTES_MAX: usize = 64 << 10;
/// Most lines that a call writes into the log.
const LINES_MAX: usize = 16;
/// Longest line of the log.
const LINE_BYTES_MAX: usize = 2_000;
/// Most elements of a table.
const TABLE_MAX: usize = 1 << 20;

/// What an operator has set for a component.
pub(crate) struct Settings {
    name: String,
    /// Where the body is lent.
    bodies: Vec<Stage>,
    permissions: Permissions,
    configuration: String,
    variables: BTreeMap<String, String>,
    limits: Limits,
    /// Who sends requests to other hosts.
    sender: Option<Arc<dyn Sender>>,
}

impl Settings {
    pub(crate) fn of(options: &ComponentOptions, sender: Option<Arc<dyn Sender>>) -> Self {
        let names = options.permissions.environment.iter();
        let variables = names.filter_map(|name| Some((name.clone(), std::env::var(name).ok()?)));
        Settings {
            name: options.name.clone(),
            bodies: options.bodies.clone(),
            permissions: options.permissions.clone(),
            configuration: options.configuration.clone(),
            variables: variables.collect(),
            limits: options.limits,
            sender,
        }
    }
}

/// What an instance is lent.
pub(crate) struct Lent {
    settings: Arc<Settings>,
    exchange: Exchange,
    /// Whether something is only decided by the exchange, so that nothing of it is changed.
    is_read_only: bool,
    /// Whether the component called `end`, even with a status that is none.
    ends: bool,
    /// The status and the body of the response that the request is ended with.
    ending: Option<(StatusCode, String)>,
    /// The response that the request is ended with has these headers.
    end_headers: HeaderMap,
    header_bytes: usize,
    /// What it says in the log, once its call is over.
    lines: Vec<(Level, Box<str>)>,
    requests: Requests,
    memory: usize,
    memory_max: usize,
    memory_is_refused: bool,
}

impl Lent {
    pub(crate) fn new(settings: Arc<Settings>, memory_max: usize) -> Self {
        Lent {
            settings,
            exchange: Exchange::new(Stage::RouterRequest),
            is_read_only: false,
            ends: false,
            ending: None,
            end_headers: HeaderMap::new(),
            header_bytes: 0,
            lines: Vec::new(),
            requests: Requests::default(),
            memory: 0,
            memory_max,
            memory_is_refused: false,
        }
    }
    /// Lends an exchange for one call.
    pub(crate) fn begin(&mut self, exchange: &mut Exchange, is_read_only: bool) {
        std::mem::swap(&mut self.exchange, exchange);
        self.is_read_only = is_read_only;
        self.ends = false;
        self.header_bytes = 0;
        self.lines.clear();
        // Who sends none looks at no clock.
        if self.settings.sender.is_some() {
            self.requests = Requests::of_call(self.settings.limits.time);
        }
        self.memory_is_refused = false;
    }
    /// Takes the exchange back. `is_over`: whether the call counts, and what it says is written into the log. Gives whether the
    /// component called `end`.
    pub(crate) fn end(&mut self, exchange: &mut Exchange, is_over: bool) -> bool {
        let plugin = self.settings.name.as_str();
        for (level, text) in self.lines.drain(..).filter(|_| is_over) {
            level.write(plugin, &text);
        }
        std::mem::swap(&mut self.exchange, exchange);
        self.requests = Requests::default();
        let headers = std::mem::take(&mut self.end_headers);
        if let Some((status, body)) = self.ending.take() {
            let headers = kept(&HeaderMap::new(), headers, exchange.stage.peer());
            let code = codes::PLUGIN_BREAK;
            let body = match body {
                body if body.is_empty() => Body::of_status(status, code),
                body if Body::is_json(&body) => Body::Json(body.into()),
                body => Body::error(&body, code),
            };
            exchange.changes.ending = Some(Box::new(Break {
                status,
                headers: (!headers.is_empty()).then_some(headers),
                body: Some(body),
                code,
            }));
        }
        self.ends
    }
    /// The body, if it is lent.
    fn body(&self) -> Option<&Bytes> {
        let exchange = &self.exchange;
        let body = exchange.body.as_ref().map(Body::bytes);
        body.filter(|_| self.settings.bodies.contains(&exchange.stage))
    }
    /// The headers: a part that comes after the first has none.
    fn headers(&self) -> Option<&HeaderMap> {
        let exchange = &self.exchange;
        exchange.is_first.then_some(&*exchange.headers)
    }
    /// The headers, to be changed.
    fn headers_mut(&mut self) -> &mut HeaderMap {
        self.exchange.changes.headers = true;
        Arc::make_mut(&mut self.exchange.headers)
    }
    /// Whether it asked for more memory than it may have.
    pub(crate) fn memory_is_refused(&self) -> bool {
        self.memory_is_refused
    }

    /// An error where something is only decided: there nothing is changed.
    fn may_change(&self) -> Result<()> {
        if self.is_read_only {
            let why = "changing anything where it only decides";
            return Err(CallError::Forbidden(why.to_owned()).into());
        }
        Ok(())
    }
    /// The name of a header that may be read.
    fn readable(&self, name: &str) -> Result<HeaderName> {
        let name = header_name(name)?;
        if self
            .settings
            .permissions
            .read_headers
            .contains(name.as_str())
        {
            return Ok(name);
        }
        let why = format!("reading the header `{name}` (`permissions.read_headers`)");
        Err(CallError::Forbidden(why).into())
    }
    /// An error for a part that comes after the first: the head has left with that.
    fn has_head(&self) -> Result<()> {
        if self.exchange.is_first {
            return Ok(());
        }
        let why = "a header or a status in a part after the first (`parts.is-first`)";
        Err(CallError::Forbidden(why.to_owned()).into())
    }
    /// A header that may be written, and a value that it can have.
    fn writable(&mut self, name: &str, value: &str) -> Result<(HeaderName, HeaderValue)> {
        self.has_head()?;
        self.may_change()?;
        let name = header_name(name)?;
        let permitted = &self.settings.permissions.write_headers;
        if !permitted.contains(name.as_str()) {
            let why = format!("writing the header `{name}` (`permissions.write_headers`)");
            return Err(CallError::Forbidden(why).into());
        }
        let value = HeaderValue::from_str(value)
            .map_err(|_| CallError::Malformed(format!("a value of the header `{name}`")))?;
        self.header_bytes += name.as_str().len() + value.len();
        let count = self.exchange.headers.len() + self.end_headers.len();
        if self.header_bytes > HEADER_BYTES_MAX || count >= HEADERS_MAX {
            let why =
                format!("more than {HEADERS_MAX} headers or {HEADER_BYTES_MAX} bytes of them");
            return Err(CallError::Limit(why).into());
        }
        Ok((name, value))
    }
    fn may_read_entry(&self, name: &str) -> Result<()> {
        if self.settings.permissions.read_context.contains(name) {
            return Ok(());
        }
        let why = format!(
            "reading the entry `{}` of the context (`permissions.read_context`)",
            short(name)
        );
        Err(CallError::Forbidden(why).into())
    }
    fn entry(&self, name: &str) -> Option<&RawValue> {
        visible(&self.exchange.context, self.exchange.own.as_ref(), name)
    }
    /// The entries that one is in, if it may be written.
    fn entries_with(&mut self, name: &str) -> Result<&mut ContextEntries> {
        self.may_change()?;
        if !self.settings.permissions.write_context.contains(name) {
            let why = format!(
                "writing the entry `{}` of the context (`permissions.write_context`)",
                short(name)
            );
            return Err(CallError::Forbidden(why).into());
        }
        let exchange = &mut self.exchange;
        Ok(home(&mut exchange.context, exchange.own.as_mut(), name))
    }
}

/// What is shown of a name that somebody has made up.
fn short(name: &str) -> &str {
    &name[..name.floor_char_boundary(100)]
}

fn header_name(name: &str) -> Result<HeaderName> {
    let read = HeaderName::from_bytes(name.as_bytes());
    Ok(read.map_err(|_| CallError::Malformed("the name of a header".to_owned()))?)
}

/// A JSON text that is not nested too deep.
fn json(text: String, what: &str) -> Result<Box<RawValue>> {
    let depth = |text: &RawValue| {
        let mut scanner = Scanner::with_depth_max(text.get().as_bytes(), BODY_DEPTH_MAX);
        scanner.skip_value().is_ok()
    };
    let value = RawValue::from_string(text)
        .ok()
        .filter(|value| depth(value));
    Ok(value.ok_or_else(|| CallError::Malformed(format!("{what}, which is to be JSON")))?)
}

impl ResourceLimiter for Lent {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        let memory = self.memory + desired.saturating_sub(current);
        if memory > self.memory_max {
            self.memory_is_refused = true;
            return Ok(false);
        }
        self.memory = memory;
        Ok(true)
    }
    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        Ok(desired <= TABLE_MAX)
    }
    fn instances(&self) -> usize {
        100
    }
    fn tables(&self) -> usize {
        100
    }
    fn memories(&self) -> usize {
        100
    }
}

/// How urgent a line of the log is.
#[derive(Clone, Copy, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[expect(dead_code, reason = "they are made of what components say")]
enum Level {
    #[component(name = "error")]
    Error,
    #[component(name = "warn")]
    Warn,
    #[component(name = "info")]
    Info,
    #[component(name = "debug")]
    Debug,
}

impl Level {
    fn write(self, plugin: &str, text: &str) {
        match self {
            Level::Error => tracing::error!(target: "ogive::component", plugin, "{text}"),
            Level::Warn => tracing::warn!(target: "ogive::component", plugin, "{text}"),
            Level::Info => tracing::info!(target: "ogive::component", plugin, "{text}"),
            Level::Debug => tracing::debug!(target: "ogive::component", plugin, "{text}"),
        }
    }
}

/// What all components may import.
pub(crate) fn linker(engine: &Engine) -> Result<Linker<Lent>> {
    let mut linker = Linker::new(engine);
    let mut of = linker.instance("ogive:hooks/exchange@1.1.0")?;
    exchange(&mut of)?;
    headers(&mut of)?;
    context(&mut linker)?;
    parts(&mut linker)?;
    settings(&mut linker)?;
    logging(&mut linker)?;
    requests::http(&mut linker)?;
    Ok(linker)
}

type Store<'a> = StoreContextMut<'a, Lent>;

fn exchange(of: &mut LinkerInstance<'_, Lent>) -> Result<()> {
    of.func_wrap("request-id", |lent: Store<'_>, (): ()| {
        Ok((lent.data().exchange.id.to_string(),))
    })?;
    of.func_wrap("subgraph", |lent: Store<'_>, (): ()| {
        let subgraph = lent.data().exchange.subgraph.as_deref();
        Ok((subgraph.unwrap_or_default().to_owned(),))
    })?;
    of.func_wrap("method", |lent: Store<'_>, (): ()| {
        Ok((lent.data().exchange.client.method.as_str().to_owned(),))
    })?;
    of.func_wrap("uri", |lent: Store<'_>, (): ()| {
        Ok((lent.data().exchange.uri().to_owned(),))
    })?;
    of.func_wrap("set-uri", |mut lent: Store<'_>, (uri,): (String,)| {
        lent.data().may_change()?;
        let Lent {
            exchange, settings, ..
        } = lent.data_mut();
        if exchange.stage != Stage::SubgraphRequest {
            let why = "another URL, which only a request to a subgraph can have";
            return Err(CallError::Malformed(why.to_owned()).into());
        }
        may_go(exchange.uri(), &uri, &settings.permissions.hosts).map_err(|why| match why {
            Refused::Forbidden(why) => CallError::Forbidden(bounded(&why)),
            Refused::Malformed(why) => CallError::Malformed(why),
        })?;
        exchange.uri = Some(uri.into());
        exchange.changes.uri = true;
        Ok(())
    })?;
    of.func_wrap("status", |lent: Store<'_>, (): ()| {
        Ok((lent.data().exchange.status.unwrap_or(200),))
    })?;
    of.func_wrap("set-status", |mut lent: Store<'_>, (code,): (u16,)| {
        lent.data().has_head()?;
        lent.data().may_change()?;
        let exchange = &mut lent.data_mut().exchange;
        exchange.status = Some(status(code)?.as_u16());
        exchange.changes.status = exchange.stage.is_response();
        Ok(())
    })?;
    of.func_wrap("body", |lent: Store<'_>, (): ()| {
        let body = lent.data().body();
        let text = body.map(|body| String::from_utf8_lossy(body).into_owned());
        Ok((text,))
    })?;
    of.func_wrap("set-body", |mut lent: Store<'_>, (body,): (String,)| {
        let lent = lent.data_mut();
        if lent.body().is_none() {
            let why = "another body where it is lent none (`bodies`)";
            return Err(CallError::Forbidden(why.to_owned()).into());
        }
        let exchange = &mut lent.exchange;
        exchange.body = Some(if exchange.stage.body_is_text() {
            Body::Text(body.into())
        } else {
            let text = Box::<str>::from(json(body, "a body")?);
            Body::Json(String::from(text).into())
        });
        exchange.changes.body = true;
        Ok(())
    })?;
    of.func_wrap("end", |mut lent: Store<'_>, (code, body): (u16, String)| {
        lent.data().may_change()?;
        lent.data_mut().ends = true;
        lent.data_mut().ending = Some((status(code)?, body));
        Ok(())
    })
}

/// A status that a response can have.
fn status(code: u16) -> Result<StatusCode> {
    let known = StatusCode::from_u16(code).ok();
    let known = known.filter(|status| (200..600).contains(&status.as_u16()));
    Ok(known.ok_or_else(|| CallError::Malformed("a status from 200 to 599".to_owned()))?)
}

/// A header as a component says it.
type Said = (String, String);

fn headers(of: &mut LinkerInstance<'_, Lent>) -> Result<()> {
    of.func_wrap("header", |lent: Store<'_>, (name,): (String,)| {
        let lent = lent.data();
        let name = lent.readable(&name)?;
        let value = lent.headers().and_then(|headers| headers.get(name));
        Ok((value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()),))
    })?;
    of.func_wrap("headers", |lent: Store<'_>, (): ()| {
        let lent = lent.data();
        let permitted = &lent.settings.permissions.read_headers;
        let all = lent.headers().into_iter().flatten();
        let all = all.filter(|(name, _)| permitted.contains(name.as_str()));
        let all = all.map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.as_str().to_owned(), value.into_owned())
        });
        Ok((all.collect::<Vec<Said>>(),))
    })?;
    of.func_wrap("set-header", |mut lent: Store<'_>, (name, value): Said| {
        let lent = lent.data_mut();
        let (name, value) = lent.writable(&name, &value)?;
        lent.headers_mut().insert(name, value);
        Ok(())
    })?;
    of.func_wrap(
        "append-header",
        |mut lent: Store<'_>, (name, value): Said| {
            let lent = lent.data_mut();
            let (name, value) = lent.writable(&name, &value)?;
            lent.headers_mut().append(name, value);
            Ok(())
        },
    )?;
    of.func_wrap(
        "remove-header",
        |mut lent: Store<'_>, (name,): (String,)| {
            let lent = lent.data_mut();
            let (name, _) = lent.writable(&name, "")?;
            lent.headers_mut().remove(name);
            Ok(())
        },
    )?;
    of.func_wrap("end-header", |mut lent: Store<'_>, (name, value): Said| {
        let lent = lent.data_mut();
        let (name, value) = lent.writable(&name, &value)?;
        lent.end_headers.append(name, value);
        Ok(())
    })
}

fn context(linker: &mut Linker<Lent>) -> Result<()> {
    let mut of = linker.instance("ogive:hooks/context@1.1.0")?;
    of.func_wrap("get", |lent: Store<'_>, (name,): (String,)| {
        let lent = lent.data();
        lent.may_read_entry(&name)?;
        let value = lent.entry(&name);
        Ok((value.map(|value| value.get().to_owned()),))
    })?;
    of.func_wrap("set", |mut lent: Store<'_>, (name, value): Said| {
        let lent = lent.data_mut();
        let entries = lent.entries_with(&name)?;
        // What is too long anyway is not read.
        if value.len() > CONTEXT_BYTES_MAX {
            let error = CoprocessorError::Context(CONTEXT_BYTES_MAX);
            return Err(CallError::Limit(error.to_string()).into());
        }
        let value = json(value, "an entry of the context")?;
        let kept = entries.set(&name, value);
        Ok(kept.map_err(|error| CallError::Limit(error.to_string()))?)
    })?;
    of.func_wrap("remove", |mut lent: Store<'_>, (name,): (String,)| {
        lent.data_mut().entries_with(&name)?.remove(&name);
        Ok(())
    })?;
    of.func_wrap("names", |lent: Store<'_>, (): ()| {
        let lent = lent.data();
        let permitted = lent.settings.permissions.read_context.iter();
        let names = permitted.filter(|name| lent.entry(name).is_some()).cloned();
        Ok((names.collect::<Vec<String>>(),))
    })
}

fn parts(linker: &mut Linker<Lent>) -> Result<()> {
    let mut of = linker.instance("ogive:hooks/parts@1.1.0")?;
    of.func_wrap("is-first", |lent: Store<'_>, (): ()| {
        Ok((lent.data().exchange.is_first,))
    })?;
    of.func_wrap("has-next", |lent: Store<'_>, (): ()| {
        Ok((lent.data().exchange.has_next.unwrap_or(false),))
    })
}

fn settings(linker: &mut Linker<Lent>) -> Result<()> {
    let mut of = linker.instance("ogive:hooks/settings@1.1.0")?;
    of.func_wrap("configuration", |lent: Store<'_>, (): ()| {
        Ok((lent.data().settings.configuration.clone(),))
    })?;
    of.func_wrap("variable", |lent: Store<'_>, (name,): (String,)| {
        let settings = &lent.data().settings;
        if !settings.permissions.environment.contains(&name) {
            let why = format!(
                "reading the variable `{}` of the environment (`permissions.environment`)",
                short(&name)
            );
            return Err(CallError::Forbidden(why).into());
        }
        Ok((settings.variables.get(&name).cloned(),))
    })
}

fn logging(linker: &mut Linker<Lent>) -> Result<()> {
    let mut of = linker.instance("ogive:hooks/logging@1.1.0")?;
    of.func_wrap(
        "log",
        |mut lent: Store<'_>, (level, text): (Level, String)| {
            let lent = lent.data_mut();
            if lent.lines.len() >= LINES_MAX {
                return Err(CallError::Limit(format!("more than {LINES_MAX} lines")).into());
            }
            let text = &text[..text.floor_char_boundary(LINE_BYTES_MAX)];
            lent.lines.push((level, text.into()));
            Ok(())
        },
    )
}
