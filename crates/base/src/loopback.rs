//! Which hosts are this machine. One answer for everything that may be sent to this machine only.

use core::net::IpAddr;

/// Whether a host, without its port and without brackets, is this machine: `localhost`, or a loopback address.
pub fn is_loopback_host(host: &str) -> bool {
    let address: Result<IpAddr, _> = host.parse();
    host.eq_ignore_ascii_case("localhost")
        || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Whether a URL over plain http is about this machine.
pub fn is_loopback_url(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next(),
        None => host.split(':').next(),
    };
    is_loopback_host(host.unwrap_or_default())
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
}
