//! How long after the last byte of a large answer the response is ready, if the answer takes its time. A measurement:
//! `cargo test --release -p ogive-transport -- arrival --ignored --nocapture`.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::HeaderMap;
use ogive_execute::{
    ExecuteInput, ExecuteLimits, ExecuteOptions, SubgraphRequest, Transport, TransportFuture,
    execute,
};
use ogive_plan::Granted;
use ogive_transport::{Client, Endpoint, HeaderRules, RequestTransport, Traffic};

use crate::arriving::{answer, plan};

/// Times that each way is tried.
const ROUNDS: usize = 40;
const PIECE: usize = 64 << 10;

/// Nobody looks at answers before they are whole.
struct Whole<'t>(&'t RequestTransport<'t>);
impl Transport for Whole<'_> {
    fn send(&self, request: SubgraphRequest) -> TransportFuture<'_> {
        self.0.send(request)
    }
}

/// Answers whatever it is asked on one connection with `body`, in pieces over `over`; says when each was written.
fn subgraph(body: Bytes, over: Duration) -> (SocketAddr, mpsc::Receiver<Instant>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (written, told) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        while read_request(&mut stream) {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all(head.as_bytes()).unwrap();
            let n_pieces = body.len().div_ceil(PIECE) as u32;
            let began = Instant::now();
            for (at, piece) in (1..).zip(body.chunks(PIECE)) {
                stream.write_all(piece).unwrap();
                let due = began + over * at / n_pieces;
                if at < n_pieces {
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                }
            }
            if written.send(Instant::now()).is_err() {
                return;
            }
        }
    });
    (address, told)
}

/// Reads a request of which all comes at once; false if there is none.
fn read_request(stream: &mut TcpStream) -> bool {
    let mut room = vec![0; PIECE];
    stream.read(&mut room).is_ok_and(|came| came > 0)
}

#[test]
#[ignore = "a measurement"]
fn large_answers_are_ready_soon_after_their_last_byte() {
    let plan = plan();
    plan.derived();
    let body = Bytes::from(answer(134_000));
    for over in [0, 20, 100].map(Duration::from_millis) {
        let (address, written) = subgraph(body.clone(), over);
        let url = format!("http://{address}/");
        let endpoint = Endpoint::new("a", &url, Traffic::default(), HeaderRules::default());
        let (endpoints, headers) = ([endpoint], HeaderMap::new());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let client = Client::new();
        let (mut ahead, mut whole) = (Vec::new(), Vec::new());
        for round in 0..2 * ROUNDS + 2 {
            let transport = RequestTransport::new(&client, &endpoints, &headers, None);
            let input = ExecuteInput {
                costs: None,
                operation_names: None,
                variables: &[],
                granted: &Granted::default(),
                locals: &[],
                limits: ExecuteLimits::default(),
                options: ExecuteOptions::default(),
                error_extensions: &[],
            };
            let hidden = Whole(&transport);
            let (transport, times): (&dyn Transport, _) = match round % 2 {
                0 => (&transport, &mut ahead),
                _ => (&hidden, &mut whole),
            };
            let began = Instant::now();
            let output = runtime.block_on(execute(&plan, input, transport));
            let done = Instant::now();
            assert_eq!(output.errors, 0);
            assert_eq!(output.stats.streamed_bytes > 0, round % 2 == 0);
            let after = done.saturating_duration_since(written.recv().unwrap());
            // The first ones connect, and learn.
            if round > 1 {
                times.push((after, done - began));
            }
        }
        for (name, times) in [("looked at", &mut ahead), ("when whole", &mut whole)] {
            times.sort();
            let after = |at: usize| times[at].0.as_secs_f64() * 1e3;
            let (half, most) = (after(ROUNDS / 2), after(ROUNDS * 9 / 10));
            let mut all: Vec<f64> = times
                .iter()
                .map(|(_, all)| all.as_secs_f64() * 1e3)
                .collect();
            all.sort_by(f64::total_cmp);
            eprintln!(
                "{} bytes over {over:?}, {name}: {half:.2} ms after the last byte (p50), {most:.2} (p90); {:.2} ms in all (p50)",
                body.len(),
                all[ROUNDS / 2]
            );
        }
    }
}
