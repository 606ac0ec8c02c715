//! The functions that scripts are offered besides those of the language.

use std::{
    fmt::Write,
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, engine::general_purpose as alphabets};
use rhai::{Dynamic, Engine, EvalAltResult, INT, Module};
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

use crate::values::{from_json, status, to_json, wrong};

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
    fn shown(value: &Dynamic) -> String {
        let text = value.to_string();
        text.chars().take(LINE_MAX).collect()
    }
    engine
        .register_fn(
            "log_error",
            |value: Dynamic| tracing::error!(target: "ogive::script", "{}", shown(&value)),
        )
        .register_fn(
            "log_warn",
            |value: Dynamic| tracing::warn!(target: "ogive::script", "{}", shown(&value)),
        )
        .register_fn(
            "log_info",
            |value: Dynamic| tracing::info!(target: "ogive::script", "{}", shown(&value)),
        )
        .register_fn(
            "log_debug",
            |value: Dynamic| tracing::debug!(target: "ogive::script", "{}", shown(&value)),
        )
        .register_fn(
            "log_trace",
            |value: Dynamic| tracing::trace!(target: "ogive::script", "{}", shown(&value)),
        )
        .on_print(|text| tracing::info!(target: "ogive::script", "{}", line(text)))
        .on_debug(|text, _, at| tracing::debug!(target: "ogive::script", %at, "{}", line(text)));
}

/// As much of a text as a line of the log has.
fn line(text: &str) -> &str {
    text.get(..text.floor_char_boundary(LINE_MAX))
        .unwrap_or_default()
}

/// Most characters of a line of the log.
const LINE_MAX: usize = 10_000;

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

fn text(engine: &mut Engine) {
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
