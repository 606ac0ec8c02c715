//! URLs as text: which are of this machine, for everything that may be sent to this machine only, and what of one may be shown.

use core::net::IpAddr;

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
}
