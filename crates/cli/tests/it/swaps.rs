//! Twenty swaps of schema and configuration under a real load tool: no request fails, and memory stays where it was.
//!
//! Three seconds by default. `OGIVE_SWAPS_SECONDS=60` is the full form, which also wants 1,000 requests per second and
//! flat memory; `bash bench/load.sh` runs it with what ships.

use std::{
    fmt::Write as _,
    fs,
    time::{Duration, Instant},
};

use ogive_testbase::{left_out, runs};

use crate::{
    page::{look, number, pace, put},
    process::{Running, address, answer, ask, demo, file, folder, subgraphs},
    wrk::Wrk,
};

const QUERY: &str = "{ me { name } topProducts(first: 1) { name inStock } }";
const SWAPS: u32 = 20;
/// This one is broken: a schema, then a configuration.
const BROKEN: [u32; 2] = [7, 12];
/// A run of so many seconds is judged by rate and memory, too.
const LONG: u64 = 30;

/// So many answers are a load.
const MANY: u64 = 101;

/// Counts answers that are not byte for byte what they should be; `wrk` itself looks at the status only. Says with a file
/// that there have been many.
const SCRIPT: &str = r#"
wrk.method = 'POST'
wrk.body = '@BODY'
wrk.headers['content-type'] = 'application/json'
local expected = [==[@ANSWER]==]
local answers = 0
wrong = 0
function setup(thread) the_thread = thread end
function response(status, headers, body)
  answers = answers + 1
  if answers == @MANY then io.open('@SEEN', 'w'):close() end
  if status ~= 200 or body ~= expected then wrong = wrong + 1 end
end
function done(summary, latency, requests)
  local e = summary.errors
  local failed = the_thread:get('wrong') + e.connect + e.read + e.write + e.timeout
  print(string.format('counted %d %d %d', summary.requests, failed, summary.duration / 1000))
end
"#;

#[test]
#[allow(clippy::print_stdout, reason = "the table is what a long run is for")]
fn swaps_under_a_load_tool_fail_nothing() {
    if !runs("wrk") {
        return left_out("`wrk` is not installed");
    }
    let seconds = number("OGIVE_SWAPS_SECONDS").unwrap_or(3);
    let (_mock, urls) = subgraphs();
    let schema = fs::read_to_string(demo("supergraph.graphql")).unwrap();
    let supergraph = file("swaps.graphql", &schema);
    let config = |extra: &str| {
        format!("listen: 127.0.0.1:0\nsupergraph: {{ path: '{supergraph}' }}\n{urls}{extra}\n")
    };
    let path = file("swaps.yaml", config(""));
    let mut serve = Running::start(&["serve", "-c", &path, "--log", "off,ogive=info"]);
    let gateway = address(&serve.logged("serving http://"));
    let body = serde_json::json!({ "query": QUERY }).to_string();
    let (status, expected) = answer(ask(&gateway, "POST", "/graphql", &body));
    assert_eq!(status, 200, "{expected}");
    let seen = folder().join("swaps.seen");
    let _ = fs::remove_file(&seen);
    let script = SCRIPT.replace("@BODY", &body).replace("@ANSWER", &expected);
    let script = script.replace("@MANY", &MANY.to_string());
    let script = script.replace("@SEEN", &seen.to_string_lossy());
    let began = Instant::now();
    let mut wrk = Wrk::start(&file("swaps.lua", script), &gateway);
    let id = serve.id();
    let resident = || look(id).map_or(0.0, |(resident, _)| resident / 1024.0);
    let mut memory = Vec::new();
    for swap in 0..SWAPS {
        // Spread over the first nine tenths.
        let due = Duration::from_millis(seconds * 1_000 * 9 / 10) * (swap + 1) / SWAPS;
        pace(due.saturating_sub(began.elapsed()));
        let at = BROKEN.iter().position(|broken| *broken == swap);
        let (text, extra) = match at {
            Some(0) => (
                "type Query { broken".to_owned(),
                format!("limits: {{ max_depth: {} }}", 10 + swap),
            ),
            Some(_) => (schema.clone(), "limits: { max_dept: 3 }".to_owned()),
            None => (
                schema.replace("type Person", &format!("\"v{swap}\"\ntype Person")),
                format!("limits: {{ max_depth: {} }}", 10 + swap),
            ),
        };
        fs::write(&supergraph, text).unwrap();
        fs::write(&path, config(&extra)).unwrap();
        serve.signal("HUP");
        let line = serve.logged("SIGHUP: reload");
        assert_eq!(
            line.contains("reload refused"),
            at.is_some(),
            "{swap}: {line}"
        );
        memory.push(resident());
    }
    pace(Duration::from_secs(seconds).saturating_sub(began.elapsed()));
    wrk.made(&seen);
    wrk.goes_on();
    let report = wrk.end();
    let counted = report
        .lines()
        .find_map(|line| line.strip_prefix("counted "));
    let counted: Vec<u64> = counted
        .unwrap_or_else(|| panic!("{report}"))
        .split(' ')
        .map(|number| number.parse().unwrap())
        .collect();
    let [requests, failed, milliseconds] = counted[..] else {
        panic!("{report}");
    };
    let rate = requests * 1_000 / milliseconds.max(1);
    let (first, last) = (memory[0], memory[memory.len() - 1]);
    let mut table = String::from(
        "| seconds | requests | per second | swaps | of them broken and refused | failed requests | resident after the \
         first swap, MiB | after the last |\n|---|---|---|---|---|---|---|---|\n",
    );
    let _ = writeln!(
        table,
        "| {} | {requests} | {rate} | {SWAPS} | {} | {failed} | {first:.1} | {last:.1} |",
        milliseconds / 1_000,
        BROKEN.len()
    );
    println!("{table}");
    put("swaps", &table);
    assert_eq!(failed, 0, "{report}");
    assert!(requests >= MANY, "{report}");
    if seconds >= LONG {
        assert!(rate >= 1_000, "{report}");
        assert!(last <= first * 1.2, "{memory:?} MiB");
    }
    serve.signal("TERM");
    assert_eq!(serve.ended().0, Some(0));
}
