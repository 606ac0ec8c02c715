//! URLs as text: which are of this machine, for everything that may be sent to this machine only, and what of one may be shown.

use core::{net::IpAddr, ops::Range};
use std::borrow::Cow;

/// Whether a host, without its port and without brackets, is this machine: `localhost`, or a loopback address.
pub fn is_loopback_host(host: &str) -> bool {
    let address: Result<IpAddr, _> = host.parse();
    host.eq_ignore_ascii_case("localhost")
        || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Whether a URL over plain http is about this machine.
pub fn is_loopback_url(url: &str) -> bool {
    url.starts_with("http://") && is_loopback_host(host_of(url))
}

/// The host of a URL, without its port and without brackets; empty if there is none.
pub fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next(),
        None => host.split(':').next(),
    };
    host.unwrap_or_default()
}

/// A URL without user, password, query and fragment, which may be secrets. For everything that logs, reports or explains.
pub fn without_secrets(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (scheme, rest),
        None => ("", url),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let separator = if scheme.is_empty() { "" } else { "://" };
    format!("{scheme}{separator}{host}{path}")
}

/// A text with stars over the users, passwords and queries of its URLs, as long as it was: for excerpts of files.
pub fn with_stars(text: &str) -> Cow<'_, str> {
    let is_end = |c: char| c.is_whitespace() || "'\"`,)]}".contains(c);
    let mut secrets: Vec<Range<usize>> = Vec::new();
    for (at, separator) in text.match_indices("://") {
        let start = at + separator.len();
        let url = text[start..].split(is_end).next().unwrap_or_default();
        let authority = url.split(['/', '?', '#']).next().unwrap_or_default();
        secrets.extend(authority.rfind('@').map(|end| start..start + end));
        // Of a socket it is the path.
        let query = url.find('?').filter(|_| !text[..at].ends_with("unix"));
        secrets.extend(query.map(|query| start + query + 1..start + url.len()));
    }
    if secrets.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut shown = 0;
    for secret in secrets.into_iter().filter(|secret| !secret.is_empty()) {
        out.push_str(text.get(shown..secret.start).unwrap_or_default());
        out.extend(std::iter::repeat_n(
            '*',
            secret.end.saturating_sub(out.len()),
        ));
        shown = secret.end.max(shown);
    }
    out.push_str(&text[shown..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_told_from_others() {
        for url in [
            "http://localhost:1/a",
            "http://LOCALHOST",
            "http://127.0.0.1:80",
            "http://127.9.9.9?a",
            "http://[::1]:1/",
            "http://[::ffff:127.0.0.1]/",
            "http://user:secret@localhost/",
        ] {
            assert!(is_loopback_url(url), "{url}");
        }
        for url in [
            "https://localhost/",
            "http://localhost.example.com/",
            "http://127.0.0.1.example.com/",
            "http://example.com/@localhost",
            "http://localhost@example.com/",
            "http://10.0.0.1/",
            "http://",
            "localhost",
        ] {
            assert!(!is_loopback_url(url), "{url}");
        }
    }

    #[test]
    fn what_may_be_secret_is_not_shown() {
        for (url, shown) in [
            (
                "https://u:S3CR3T@a.example/b?key=S3CR3T#S3CR3T",
                "https://a.example/b",
            ),
            ("redis://:S3CR3T@[::1]:6379/0", "redis://[::1]:6379/0"),
            ("u:S3CR3T@a:4222", "a:4222"),
            ("https://u:S3@CR3T@a", "https://a"),
            ("https://a/b@c", "https://a/b@c"),
            ("/etc/ogive/a@b.json", "/etc/ogive/a@b.json"),
            ("unix:///run/a.sock?path=/b", "unix:///run/a.sock"),
            ("", ""),
        ] {
            assert_eq!(without_secrets(url), shown, "{url}");
        }
    }

    #[test]
    fn excerpts_have_stars_over_what_may_be_secret() {
        for (text, shown) in [
            ("url: 'https://u:pw@a/b'", "url: 'https://****@a/b'"),
            (
                "[http://ü@a?k=v, http://b?c]",
                "[http://**@a?***, http://b?*]",
            ),
            ("unix:///run/a.sock?path=/b", "unix:///run/a.sock?path=/b"),
            (
                "@link(url: \"https://a/b/v2.3\") @key",
                "@link(url: \"https://a/b/v2.3\") @key",
            ),
            ("a://b@c://d@e", "a://*@c://*@e"),
            ("://", "://"),
            ("http://a?to=http://u:p@b", "http://a?***************"),
        ] {
            assert_eq!(with_stars(text), shown);
            assert_eq!(with_stars(text).len(), text.len());
        }
    }
}
