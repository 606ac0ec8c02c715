//! Faults of services that are asked about a caller: whoever decides policies, or knows tokens. `docs/faults.md` is made from the table.

use ogive_testbase::subgraph::{Reply, StubSubgraph, answer};

/// A fault of a service.
pub(crate) struct Fault {
    pub(crate) fault: &'static str,
    reply: fn() -> Reply,
    /// What is asked instead of the service, if its URL is at fault.
    scheme: &'static str,
}

const fn fault(fault: &'static str, reply: fn() -> Reply) -> Fault {
    Fault {
        fault,
        reply,
        scheme: "http",
    }
}

impl Fault {
    /// Whether it is one of the URL, so that there is no time before it.
    pub(crate) fn is_of_url(&self) -> bool {
        self.scheme == "https"
    }
    /// A service that has it.
    pub(crate) fn start(&self) -> (StubSubgraph, String) {
        self.start_after(None)
    }
    /// One that answers the first request with these bytes, before it has it.
    pub(crate) fn start_after(&self, first: Option<Vec<u8>>) -> (StubSubgraph, String) {
        let reply = self.reply;
        let service = StubSubgraph::start(move |nth, _| match &first {
            Some(first) if nth == 0 => Reply::Last(first.clone()),
            _ => reply(),
        });
        let url = format!("{}://{}/", self.scheme, service.address);
        (service, url)
    }
}

pub(crate) const FAULTS: &[Fault] = &[
    fault("closes instead of answering", || Reply::Last(Vec::new())),
    fault("resets the connection", || Reply::Reset(Vec::new())),
    fault("accepts, and never answers", || Reply::Hang(Vec::new())),
    fault("drips, a byte at a time", || {
        Reply::Drip(b"HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\n".into())
    }),
    fault("speaks no HTTP", || Reply::Last(b"hello\r\n\r\n".into())),
    Fault {
        scheme: "https",
        ..fault("speaks no TLS", || Reply::Last(b"hello\r\n\r\n".into()))
    },
    fault("answers 500", || Reply::Whole(answer(500, "", b"{}"))),
    fault("answers 401", || Reply::Whole(answer(401, "", b"{}"))),
    fault("answers 404", || Reply::Whole(answer(404, "", b"{}"))),
    fault("redirects to another host", || {
        let to = "location: http://127.0.0.1:1/\r\n";
        Reply::Whole(answer(307, to, b""))
    }),
    fault("answers with HTML", || {
        Reply::Whole(answer(200, "", b"<html></html>"))
    }),
    fault("answers nothing", || Reply::Whole(answer(200, "", b""))),
    fault("answers with JSON of another form", || {
        Reply::Whole(answer(200, "", b"[true]"))
    }),
    fault("answers with JSON that has a member twice", || {
        let body =
            br#"{"policies":{"stock":true},"active":true,"active":true,"policies":{"stock":true}}"#;
        Reply::Whole(answer(200, "", body))
    }),
    fault("answers two megabytes", || {
        Reply::Whole(answer(200, "", &[b' '; 2 << 20]))
    }),
    fault("announces 200 MB", || {
        Reply::Hang(b"HTTP/1.1 200 OK\r\ncontent-length: 200000000\r\n\r\n{".into())
    }),
];
