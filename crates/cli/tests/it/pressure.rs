//! The process under a real load tool and under attack.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::TcpStream,
};

use ogive_testbase::{left_out, runs};

use crate::{
    process::{Running, address, answer, ask, file, folder},
    wrk::Wrk,
};

const QUERY: &str = r#"{"query":"{ me { name } topProducts(first: 1) { name inStock } }"}"#;

/// What `wrk` counted besides good answers and connections that were refused after the end, which it notices when it
/// connects or when it first writes. A request that got in and was not answered is a `read` error.
fn failures(report: &str) -> Vec<&str> {
    let errors = report.lines().filter_map(|line| {
        let errors = line.trim().strip_prefix("Socket errors: ")?;
        Some(errors.split(", ").filter(|e| {
            !e.starts_with("connect ") && !e.starts_with("write ") && !e.ends_with(" 0")
        }))
    });
    let statuses = report.lines().filter(|line| line.contains("Non-2xx"));
    errors.flatten().chain(statuses).collect()
}

#[test]
fn a_stop_under_a_load_tool_fails_nothing() {
    if !runs("wrk") {
        return left_out("`wrk` is not installed");
    }
    let mut demo = Running::start(&["demo", "--listen", "127.0.0.1:0"]);
    let gateway = address(&demo.printed("GraphQL "));
    let seen = folder().join("wrk.seen");
    let _ = std::fs::remove_file(&seen);
    let script = file(
        "wrk.lua",
        format!(
            "wrk.method = 'POST'\nwrk.body = '{QUERY}'\nwrk.headers['content-type'] = 'application/json'\n\
             local answers = 0\nfunction response()\n  answers = answers + 1\n  \
             if answers == 17 then io.open('{}', 'w'):close() end\nend\n",
            seen.display()
        ),
    );
    let mut wrk = Wrk::start(&script, &gateway);
    // In the middle of it.
    wrk.made(&seen);
    for _ in 0..50 {
        assert_eq!(answer(ask(&gateway, "POST", "/graphql", QUERY)).0, 200);
    }
    demo.signal("TERM");
    let (code, rest) = demo.ended();
    assert_eq!(code, Some(0), "{rest}");
    assert!(!rest.contains("cut off"), "{rest}");
    wrk.goes_on();
    let report = wrk.end();
    let answered = report
        .split(" requests in")
        .next()
        .unwrap()
        .lines()
        .last()
        .unwrap();
    assert!(answered.trim().parse::<u32>().unwrap() > 16, "{report}");
    assert_eq!(failures(&report), Vec::<&str>::new(), "{report}");
}

/// Status and length of the answer. Whoever is slow to send what is refused is left before its end.
fn attacked(gateway: &str, attack: &str) -> (u16, usize) {
    let mut stream = TcpStream::connect(gateway).unwrap();
    let length = attack.len();
    let _ = write!(
        stream,
        "POST /graphql HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{attack}"
    );
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.len())
}

/// Resident memory in pages.
fn resident(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    text.split(' ').nth(1)?.parse().ok()
}

#[test]
fn attacks_leave_no_memory_behind() {
    let mut demo = Running::start(&["demo", "--listen", "127.0.0.1:0"]);
    let gateway = address(&demo.printed("GraphQL "));
    if resident(demo.id()).is_none() {
        return left_out("there is no /proc");
    }
    let query = |text: String| format!(r#"{{"query":"{text}"}}"#);
    let many = |count: usize, field: &dyn Fn(usize) -> String| {
        let fields: Vec<String> = (0..count).map(field).collect();
        query(format!("{{ {} }}", fields.join(" ")))
    };
    let attacks = [
        many(10_000, &|i| format!("a{i}: me {{ name }}")),
        many(1_000, &|i| format!("a{i}: me {{ name }}")),
        many(2_000, &|_| "me { name }".into()),
        many(5_000, &|i| format!("nope{i}")),
        query(format!("{{ __typename {} }}", "@a ".repeat(50_000))),
        query(format!("{}a{}", "{a".repeat(10_000), "}".repeat(10_000))),
        format!(
            r#"{{"query":"{{a}}","variables":{{"a":{}{}}}}}"#,
            "[".repeat(10_000),
            "]".repeat(10_000)
        ),
        query(format!("{{ {} }}", "x".repeat(1_000_000))),
        " ".repeat(3_000_000),
    ];
    let round = || {
        for attack in &attacks {
            for _ in 0..3 {
                let (status, length) = attacked(&gateway, attack);
                assert!(status < 500 && length < 100_000, "{status}: {length} bytes");
            }
        }
        assert_eq!(answer(ask(&gateway, "POST", "/graphql", QUERY)).0, 200);
    };
    // What is resident goes up and down by a tenth; what is left behind only goes up.
    let rounds = || -> Vec<u64> {
        let resident = || resident(demo.id()).unwrap();
        (0..3).map(|_| (round(), resident()).1).collect()
    };
    let (before, after) = (rounds(), rounds());
    let (most, least) = (before.iter().max().unwrap(), after.iter().min().unwrap());
    assert!(least * 10 <= most * 12, "{before:?} pages became {after:?}");
    demo.signal("TERM");
    assert_eq!(demo.ended().0, Some(0));
}
