//! Cache directives of an answer: `Cache-Control` (RFC 9111, section 5.2.2; RFC 5861) and the targeted field
//! `Ogive-Cache-Control`, which is read instead where it is present (RFC 9213).
//!
//! An ambiguous directive is read in the way that stores less: of several lifetimes the shortest counts, a lifetime that
//! cannot be read is zero, and a qualified `private="..."` applies to the whole answer.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::structured::{Value, parse_dictionary};

/// The targeted field of this cache.
pub const OGIVE_CACHE_CONTROL: HeaderName = HeaderName::from_static("ogive-cache-control");

/// Longest lifetime of a directive, in seconds; longer ones count as this one (RFC 9111, section 1.2.2).
pub const SECONDS_MAX: u64 = 1 << 31;

/// The cache directives of an answer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Directives {
    /// The answer must not be stored.
    pub no_store: bool,
    /// A stored answer must be validated before each use.
    pub no_cache: bool,
    /// The answer is for one user.
    pub private: bool,
    /// The answer is for all users, even if the request had credentials.
    pub public: bool,
    /// Once stale, the answer must be validated: `must-revalidate` or `proxy-revalidate`.
    pub must_revalidate: bool,
    /// A cache that understands the status ignores `no-store`.
    pub must_understand: bool,
    /// Seconds for which the answer is fresh.
    pub max_age: Option<u64>,
    /// Seconds for which the answer is fresh in a shared cache; overrides `max_age`.
    pub s_maxage: Option<u64>,
    /// Seconds for which the stale answer may be used while the cache revalidates it.
    pub stale_while_revalidate: Option<u64>,
    /// Seconds for which the stale answer may be used when revalidation fails.
    pub stale_if_error: Option<u64>,
    /// Whether a targeted field states these directives: `Expires` is ignored then.
    pub is_targeted: bool,
}

impl Directives {
    /// The directives in the headers of an answer.
    pub fn of(headers: &HeaderMap) -> Self {
        Self::of_targeted(headers).unwrap_or_else(|| {
            let mut out = Directives::default();
            for value in headers.get_all(header::CACHE_CONTROL) {
                out.read(value);
            }
            out
        })
    }

    /// The directives of the targeted field; `None` if it is missing, empty or malformed (RFC 9213, section 2.1).
    fn of_targeted(headers: &HeaderMap) -> Option<Self> {
        let members = parse_dictionary(&joined(headers, &OGIVE_CACHE_CONTROL)?).ok()?;
        let mut out = Directives {
            is_targeted: true,
            ..Directives::default()
        };
        for (name, value) in &members {
            let seconds = match value {
                Value::Integer(seconds) => u64::try_from(*seconds).ok(),
                _ => None,
            };
            let permits = !matches!(value, Value::Boolean(false));
            out.take(name, seconds, permits);
        }
        (!members.is_empty()).then_some(out)
    }

    fn read(&mut self, value: &HeaderValue) {
        let Ok(text) = value.to_str() else {
            self.no_store = true;
            return;
        };
        for item in unquoted_commas(text) {
            let (name, argument) = item.split_once('=').unwrap_or((item, ""));
            let seconds = parse_seconds(argument);
            // A space around the name is malformed; a directive that forbids caching counts nevertheless.
            self.take(&name.trim().to_ascii_lowercase(), seconds, true);
        }
    }

    /// Takes one directive. `permits`: whether a directive that permits caching is set; false for `?0`.
    fn take(&mut self, name: &str, seconds: Option<u64>, permits: bool) {
        let lifetime = |known: &mut Option<u64>| {
            let stated = seconds.unwrap_or(0).min(SECONDS_MAX);
            *known = Some(known.map_or(stated, |known| known.min(stated)));
        };
        match name {
            "no-store" => self.no_store = true,
            "no-cache" => self.no_cache = true,
            "private" => self.private = true,
            "public" => self.public |= permits,
            "must-revalidate" | "proxy-revalidate" => self.must_revalidate = true,
            "must-understand" => self.must_understand |= permits,
            "max-age" => lifetime(&mut self.max_age),
            "s-maxage" => lifetime(&mut self.s_maxage),
            "stale-while-revalidate" => lifetime(&mut self.stale_while_revalidate),
            "stale-if-error" => lifetime(&mut self.stale_if_error),
            _ => {}
        }
    }
}

/// Joins all lines of a header (RFC 9110, section 5.3); `None` if it is missing or not ASCII.
pub(crate) fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut lines = headers.get_all(name).iter();
    let mut out = lines.next()?.to_str().ok()?.to_owned();
    for line in lines {
        out.push_str(", ");
        out.push_str(line.to_str().ok()?);
    }
    Some(out)
}

/// Seconds, possibly in quotation marks; `None` if it is anything but digits.
fn parse_seconds(argument: &str) -> Option<u64> {
    let bare = argument
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(argument);
    parse_digits(bare)
}

/// Seconds in digits; `None` for any other text. A number that does not fit is longer than any lifetime.
pub(crate) fn parse_digits(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Splits a list at the commas outside of quotation marks.
fn unquoted_commas(text: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |c| {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' => return !is_quoted,
            _ => {}
        }
        false
    })
    .map(str::trim)
}
