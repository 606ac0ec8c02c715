//! Scalars with a form of their own: addresses, paths, URLs, names of headers, patterns, shares, modes of files. Those
//! with units are in [`units`](crate::units).

use std::num::{NonZeroU8, NonZeroUsize};

use ogive_base::PeerRange;
use ogive_yaml::Node;

use crate::decode::{Decode, Errors};

/// A number that is there and not zero, for defaults.
pub(crate) const fn nonzero(value: usize) -> NonZeroUsize {
    match NonZeroUsize::new(value) {
        Some(value) => value,
        None => NonZeroUsize::MIN,
    }
}

/// For which part of requests an override label is on, in percent from 0 to 100.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct LabelShare(pub f64);

impl LabelShare {
    /// Reads `true`, `false` or `12.5%`.
    pub fn parse(text: &str) -> Option<LabelShare> {
        match text {
            "true" => Some(LabelShare(100.0)),
            "false" => Some(LabelShare(0.0)),
            _ => Self::percent(text.strip_suffix('%')?.trim_end()),
        }
    }
    /// Reads a percentage without its sign.
    pub fn percent(text: &str) -> Option<LabelShare> {
        let digits = |c: char| c.is_ascii_digit() || c == '.';
        let value: f64 = text.parse().ok().filter(|_| text.chars().all(digits))?;
        (value <= 100.0).then_some(LabelShare(value))
    }
}

/// A part of something, in percent from 1 to 100.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Percent(pub NonZeroU8);

impl Percent {
    /// So many percent, for defaults; at least one.
    pub(crate) const fn of(percent: u8) -> Percent {
        match NonZeroU8::new(percent) {
            Some(percent) => Percent(percent),
            None => Percent(NonZeroU8::MIN),
        }
    }
    /// Reads `50%`.
    fn parse(text: &str) -> Option<Percent> {
        let number = text.strip_suffix('%')?.trim_end();
        let percent: NonZeroU8 = number.parse().ok()?;
        (percent.get() <= 100).then_some(Percent(percent))
    }
}

impl Decode for Percent {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let text = errors.scalar(node, "a percentage")?;
        let percent = Percent::parse(text);
        if percent.is_none() {
            errors.invalid(
                node.span,
                format!("expected a percentage, found `{text}`"),
                "a percentage is a whole number from 1 to 100 with its sign, such as `25%`",
            );
        }
        percent
    }
}

/// The name of an HTTP header, in lower case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeaderName(pub String);

/// A regular expression, checked to be one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern(pub String);

impl Decode for Pattern {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let text = errors.scalar(node, "a regular expression")?;
        if let Err(error) = regex_lite::Regex::new(text) {
            errors.invalid(
                node.span,
                format!("`{text}` is no regular expression: {error}"),
                "",
            );
            return None;
        }
        Some(Pattern(text.to_owned()))
    }
}

/// `HOST:PORT`, or `unix://` and the path of a socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listen(pub String);

impl Listen {
    /// Checks the form; the error says what to write. Names are resolved when the address is bound.
    pub fn parse(text: &str) -> Result<Listen, &'static str> {
        let help = "write `HOST:PORT`, such as `127.0.0.1:4000` or `0.0.0.0:4000`, or `unix:///run/ogive.sock`";
        if let Some(path) = text.strip_prefix("unix://") {
            let ok = path.starts_with('/') && path.len() > 1;
            return ok.then(|| Listen(text.to_owned())).ok_or(help);
        }
        let (host, port) = text.rsplit_once(':').ok_or(help)?;
        let host_ok = !host.is_empty()
            && (!host.contains(':') || (host.starts_with('[') && host.ends_with(']')));
        if !host_ok || port.parse::<u16>().is_err() {
            return Err(help);
        }
        Ok(Listen(text.to_owned()))
    }
}

impl Listen {
    /// Whether it is a unix socket.
    pub fn is_unix(&self) -> bool {
        self.0.starts_with("unix://")
    }
}

/// Who may do what with a file, as `chmod` writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileMode(pub u32);

impl FileMode {
    /// Reads three octal digits, with or without a 0 before them.
    pub fn parse(text: &str) -> Option<FileMode> {
        let digits = text
            .strip_prefix("0o")
            .or(text.strip_prefix('0'))
            .unwrap_or(text);
        let ok = digits.len() == 3 && digits.bytes().all(|b| (b'0'..=b'7').contains(&b));
        u32::from_str_radix(digits, 8)
            .ok()
            .filter(|_| ok)
            .map(FileMode)
    }
}

impl Decode for FileMode {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let text = errors.scalar(node, "a mode")?;
        let mode = FileMode::parse(text);
        if mode.is_none() {
            let message = format!("`{text}` is no mode of a file");
            errors.invalid(
                node.span,
                message,
                "write three octal digits, such as `0660`",
            );
        }
        mode
    }
}

/// The path of a URL, starting with `/`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path(pub String);

/// An absolute `http://` or `https://` URL, or `unix://` and the path of a socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Url(pub String);

impl Decode for Listen {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let text = errors.scalar(node, "an address")?;
        Listen::parse(text)
            .map_err(|help| errors.invalid(node.span, format!("`{text}` is no address"), help))
            .ok()
    }
}

impl Decode for Path {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let text = errors.scalar(node, "a path")?;
        let ok = text.starts_with('/')
            && text
                .bytes()
                .all(|b| b.is_ascii_graphic() && !b"?#\"<>`{}".contains(&b));
        if !ok {
            errors.invalid(
                node.span,
                format!("`{text}` is no path"),
                "a path starts with `/`, such as `/graphql`",
            );
            return None;
        }
        Some(Path(text.to_owned()))
    }
}

impl Decode for Url {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let text = errors.scalar(node, "a URL")?;
        if has_user(text) {
            errors.invalid(
                node.span,
                format!(
                    "the URL `{}` has a user or a password before its host",
                    without_secrets(text)
                ),
                "send credentials in headers: a URL is written to logs",
            );
            return None;
        }
        let rest = text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"));
        let socket = text.strip_prefix("unix://");
        let ok = (rest.is_some_and(has_host)
            || socket.is_some_and(|path| path.starts_with('/') && path.len() > 1))
            && text.bytes().all(|b| b.is_ascii_graphic());
        if !ok {
            errors.invalid(
                node.span,
                format!("`{}` is no URL", without_secrets(text)),
                "write the whole URL, such as `http://localhost:4001/graphql`",
            );
            return None;
        }
        Some(Url(text.to_owned()))
    }
}

pub use ogive_base::{is_loopback_url as is_loopback, without_secrets};

/// Whether a URL says who asks.
pub(crate) fn has_user(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next();
    !url.starts_with("unix://") && authority.is_some_and(|authority| authority.contains('@'))
}

/// Whether what comes after the scheme begins with a host, and with a port if it says so.
fn has_host(rest: &str) -> bool {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let name = |c: char| c.is_ascii_alphanumeric() || "-._~%".contains(c);
    let host_ok = match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.chars().all(name),
    };
    host_ok && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

impl Decode for HeaderName {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        crate::decode::header_name(node, errors).map(HeaderName)
    }
}

impl Decode for LabelShare {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let text = errors.scalar(node, "`true`, `false` or a percentage")?;
        let share = LabelShare::parse(text);
        if share.is_none() {
            errors.invalid(
                node.span,
                format!("expected `true`, `false` or a percentage, found `{text}`"),
                "a percentage is a number from 0 to 100 with its sign, such as `25%`",
            );
        }
        share
    }
}

impl Decode for PeerRange {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let text = errors.scalar(node, "an address")?;
        PeerRange::parse(text)
            .map_err(|help| errors.invalid(node.span, format!("`{text}` is no address"), help))
            .ok()
    }
}
