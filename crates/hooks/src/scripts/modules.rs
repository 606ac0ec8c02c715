//! The functions that scripts are offered besides those of the language.

use std::{
    cell::RefCell,
    fmt::Write,
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, engine::general_purpose as alphabets};
use rhai::{
    Array, Dynamic, Engine, EvalAltResult, INT, ImmutableString, Module, NativeCallContext,
};
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};
use tracing::Level;

use super::values::{from_json, status, to_json, wrong};

type Result<T> = std::result::Result<T, Box<EvalAltResult>>;

/// Adds all of them.
pub(crate) fn register(engine: &mut Engine) {
    log(engine);
    text(engine);
    engine
        .register_static_module("base64", base64_module().into())
        .register_static_module("json", json_module().into())
        .register_static_module("sha256", sha256_module().into())
        .register_static_module("env", env_module().into())
        .register_fn("json_encode", |value: Dynamic| to_json(&value))
        .register_fn("json_decode", |text: &str| from_json(text))
        .register_fn("unix_now", || since_epoch(1_000))
        .register_fn("unix_ms_now", || since_epoch(1))
        .register_fn("uuid_v4", uuid_v4)
        .register_fn("status_code_from_int", |code: INT| status(code))
        // The language has one that would keep a whole worker.
        .register_fn("sleep", |_: INT| -> Result<()> { Err(no_sleep()) })
        .register_fn("sleep", |_: f64| -> Result<()> { Err(no_sleep()) });
}

fn no_sleep() -> Box<EvalAltResult> {
    wrong("`sleep` is not offered: others are waiting")
}

fn log(engine: &mut Engine) {
    for (name, level) in [
        ("log_error", Level::ERROR),
        ("log_warn", Level::WARN),
        ("log_info", Level::INFO),
        ("log_debug", Level::DEBUG),
        ("log_trace", Level::TRACE),
    ] {
        engine.register_fn(name, move |value: Dynamic| {
            Line::new(level, &value.to_string()).write();
        });
    }
    engine
        .on_print(|text| Line::new(Level::INFO, text).write())
        .on_debug(|text, _, at| Line::new(Level::DEBUG, &format!("{at}: {text}")).write());
}

/// Most bytes of a line of the log.
const LINE_MAX: usize = 10_000;

thread_local! {
    /// What the call of this thread says, while it may have to be made again.
    static HELD: RefCell<Option<Vec<Line>>> = const { RefCell::new(None) };
}

/// A line of the log.
struct Line {
    level: Level,
    text: Box<str>,
}

impl Line {
    fn new(level: Level, text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(LINE_MAX)];
        Line {
            level,
            text: text.into(),
        }
    }
    /// Writes it, or holds it back while its call may have to be made again.
    fn write(self) {
        let is_free = HELD.with_borrow_mut(|held| match held {
            Some(lines) => {
                lines.push(self);
                None
            }
            None => Some(self),
        });
        let Some(Line { level, text }) = is_free else {
            return;
        };
        match level {
            Level::ERROR => tracing::error!(target: "ogive::script", "{text}"),
            Level::WARN => tracing::warn!(target: "ogive::script", "{text}"),
            Level::INFO => tracing::info!(target: "ogive::script", "{text}"),
            Level::DEBUG => tracing::debug!(target: "ogive::script", "{text}"),
            Level::TRACE => tracing::trace!(target: "ogive::script", "{text}"),
        }
    }
}

/// Holds back what the call of this thread says, until it is dropped.
pub(crate) struct LogLines;

impl LogLines {
    pub(crate) fn hold() -> Self {
        HELD.set(Some(Vec::new()));
        LogLines
    }
    /// Writes what was held back.
    pub(crate) fn write(self) {
        for line in HELD.take().into_iter().flatten() {
            line.write();
        }
    }
}

impl Drop for LogLines {
    fn drop(&mut self) {
        HELD.set(None);
    }
}

fn since_epoch(milliseconds: u128) -> INT {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    INT::try_from(since.as_millis() / milliseconds).unwrap_or(INT::MAX)
}

fn uuid_v4() -> Result<String> {
    let mut bytes = [0_u8; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| wrong("there is no chance to be had"))?;
    // RFC 9562, section 5.4.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut out = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        let _ = write!(out, "{byte:02x}");
    }
    Ok(out)
}

#[derive(Clone, Copy, Debug)]
struct Alphabet(&'static alphabets::GeneralPurpose);

fn base64_module() -> Module {
    let mut module = Module::new();
    for (name, alphabet) in [
        ("STANDARD", &alphabets::STANDARD),
        ("STANDARD_NO_PAD", &alphabets::STANDARD_NO_PAD),
        ("URL_SAFE", &alphabets::URL_SAFE),
        ("URL_SAFE_NO_PAD", &alphabets::URL_SAFE_NO_PAD),
    ] {
        module.set_var(name, Dynamic::from(Alphabet(alphabet)));
    }
    fn decode(text: &str, alphabet: Alphabet) -> Result<String> {
        let bytes = alphabet
            .0
            .decode(text)
            .map_err(|error| wrong(error.to_string()))?;
        String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))
    }
    module.set_native_fn("encode", |text: &str| Ok(alphabets::STANDARD.encode(text)));
    module.set_native_fn("encode", |text: &str, alphabet: Alphabet| {
        Ok(alphabet.0.encode(text))
    });
    module.set_native_fn("decode", |text: &str| {
        decode(text, Alphabet(&alphabets::STANDARD))
    });
    module.set_native_fn("decode", decode);
    module
}

fn json_module() -> Module {
    let mut module = Module::new();
    module.set_native_fn("encode", |value: Dynamic| to_json(&value));
    module.set_native_fn("decode", |text: &str| from_json(text));
    module
}

fn sha256_module() -> Module {
    let mut module = Module::new();
    module.set_native_fn("digest", |text: &str| {
        let mut out = String::with_capacity(64);
        for byte in Sha256::digest(text) {
            let _ = write!(out, "{byte:02x}");
        }
        Ok(out)
    });
    module
}

fn env_module() -> Module {
    let mut module = Module::new();
    module.set_native_fn("get", |name: &str| {
        std::env::var(name)
            .map_err(|_| wrong(format!("there is no variable `{name}` in the environment")))
    });
    module
}

/// The language has these as functions that may change the text, so it would write back what they were called on.
fn splitting(engine: &mut Engine) {
    fn array<'t>(parts: impl Iterator<Item = &'t str>) -> Array {
        parts.map(|part| part.into()).collect()
    }
    fn most(parts: INT) -> usize {
        usize::try_from(parts).unwrap_or(0).max(1)
    }
    engine
        .register_fn("split", |t: &str| {
            if t.is_empty() {
                array(std::iter::once(t))
            } else {
                array(t.split_whitespace())
            }
        })
        .register_fn("split", |t: &str, by: &str| array(t.split(by)))
        .register_fn("split", |t: &str, by: char| array(t.split(by)))
        .register_fn("split", |t: &str, by: &str, n: INT| {
            array(t.splitn(most(n), by))
        })
        .register_fn("split", |t: &str, by: char, n: INT| {
            array(t.splitn(most(n), by))
        })
        .register_fn("split_rev", |t: &str, by: &str| array(t.rsplit(by)))
        .register_fn("split_rev", |t: &str, by: char| array(t.rsplit(by)))
        .register_fn("split_rev", |t: &str, by: &str, n: INT| {
            array(t.rsplitn(most(n), by))
        })
        .register_fn("split_rev", |t: &str, by: char, n: INT| {
            array(t.rsplitn(most(n), by))
        });
}

/// `replace` of the language makes a text of any length before its size is looked at.
fn replacing(engine: &mut Engine) {
    fn replace(
        call: &NativeCallContext<'_>,
        text: &mut ImmutableString,
        (find, by): (&str, &str),
    ) -> Result<()> {
        let count = if by.len() > find.len() {
            text.matches(find).count()
        } else {
            0
        };
        let more = count.saturating_mul(by.len().saturating_sub(find.len()));
        let max = call.engine().max_string_size();
        if max > 0 && text.len().saturating_add(more) > max {
            let what = "Length of string".to_owned();
            return Err(EvalAltResult::ErrorDataTooLarge(what, call.call_position()).into());
        }
        if !text.is_empty() {
            *text = text.replace(find, by).into();
        }
        Ok(())
    }
    type Call<'a> = NativeCallContext<'a>;
    type Text<'a> = &'a mut ImmutableString;
    engine
        .register_fn(
            "replace",
            |c: Call<'_>, t: Text<'_>, find: &str, by: &str| replace(&c, t, (find, by)),
        )
        .register_fn(
            "replace",
            |c: Call<'_>, t: Text<'_>, find: &str, by: char| {
                replace(&c, t, (find, by.encode_utf8(&mut [0; 4])))
            },
        )
        .register_fn(
            "replace",
            |c: Call<'_>, t: Text<'_>, find: char, by: &str| {
                replace(&c, t, (find.encode_utf8(&mut [0; 4]), by))
            },
        )
        .register_fn(
            "replace",
            |c: Call<'_>, t: Text<'_>, find: char, by: char| {
                let mut buffers = [[0; 4]; 2];
                let [find_in, by_in] = &mut buffers;
                replace(&c, t, (find.encode_utf8(find_in), by.encode_utf8(by_in)))
            },
        );
}

fn text(engine: &mut Engine) {
    replacing(engine);
    splitting(engine);
    engine
        .register_fn("urlencode", |text: &str| {
            let mut out = String::with_capacity(text.len());
            for byte in text.bytes() {
                if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                    out.push(char::from(byte));
                } else {
                    let _ = write!(out, "%{byte:02X}");
                }
            }
            out
        })
        .register_fn("urldecode", |text: &str| -> Result<String> {
            let malformed = || wrong(format!("this is not encoded for URLs: {text}"));
            let (mut out, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
            while let [byte, after @ ..] = rest {
                rest = after;
                if *byte != b'%' {
                    out.push(*byte);
                    continue;
                }
                let digits = rest.get(..2).and_then(|two| std::str::from_utf8(two).ok());
                let digits = digits.filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()));
                let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
                out.push(byte.ok_or_else(malformed)?);
                rest = &rest[2..];
            }
            String::from_utf8(out).map_err(|_| malformed())
        });
}
