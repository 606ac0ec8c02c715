//! Subgraphs in one process: subscriptions are handed to the test, which says what their events are; everything else is
//! answered at once.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use ogive_testbase::subgraph::{answer, read_request};

/// A test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Feed {
    address: SocketAddr,
    opened: Receiver<FeedStream>,
    lookups: Arc<AtomicUsize>,
    /// Of which subgraph entities were asked last.
    asked: Arc<Mutex<String>>,
    /// With which `authorization`.
    told: Arc<Mutex<String>>,
}

/// A subscription of the gateway.
pub(crate) struct FeedStream {
    stream: TcpStream,
    pub(crate) request: String,
}

impl Feed {
    pub(crate) fn start() -> Feed {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (open, opened) = channel();
        let lookups = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&lookups);
        let asked = Arc::<Mutex<String>>::default();
        let noted = Arc::clone(&asked);
        let told = Arc::<Mutex<String>>::default();
        let authorized = Arc::clone(&told);
        // Ends with the process: the threads only wait.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (open, counted) = (open.clone(), Arc::clone(&counted));
                let noted = Arc::clone(&noted);
                let authorized = Arc::clone(&authorized);
                std::thread::spawn(move || {
                    serve(stream.unwrap(), &open, &counted, (&noted, &authorized))
                });
            }
        });
        Feed {
            address,
            opened,
            lookups,
            asked,
            told,
        }
    }
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
    /// The next subscription that the gateway opens.
    pub(crate) fn opened(&self) -> FeedStream {
        self.opened
            .recv_timeout(PATIENCE)
            .expect("nobody subscribed")
    }
    /// Whether there is none.
    pub(crate) fn is_quiet(&self) -> bool {
        self.opened.try_recv().is_err()
    }
    /// Of which subgraph, by the path of its URL, entities were asked last.
    pub(crate) fn asked_of(&self) -> String {
        self.asked.lock().unwrap().clone()
    }
    /// With which `authorization` entities were asked last.
    pub(crate) fn told(&self) -> String {
        self.told.lock().unwrap().clone()
    }
    /// How often entities were asked for.
    pub(crate) fn lookups(&self) -> usize {
        self.lookups.load(Ordering::SeqCst)
    }
}

fn serve(
    mut stream: TcpStream,
    open: &Sender<FeedStream>,
    lookups: &AtomicUsize,
    (asked_of, told): (&Mutex<String>, &Mutex<String>),
) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer) {
        if request.contains("subscription") {
            // The answer never begins.
            if request.contains("withheld") {
                let _ = open.send(FeedStream { stream, request });
                return;
            }
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
            let _ = open.send(FeedStream { stream, request });
            return;
        }
        let body = if request.contains("_entities") {
            lookups.fetch_add(1, Ordering::SeqCst);
            let path = request.split(' ').nth(1).unwrap();
            path.clone_into(&mut asked_of.lock().unwrap());
            let mut lines = request.lines();
            let authorization = lines.find_map(|line| line.strip_prefix("authorization: "));
            *told.lock().unwrap() = authorization.unwrap_or_default().to_owned();
            let body = request.split("\r\n\r\n").nth(1).unwrap();
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            let variables = body["variables"].as_object().unwrap();
            let asked = variables.values().next().unwrap().as_array().unwrap();
            let entities: Vec<_> = asked
                .iter()
                .map(|asked| serde_json::json!({"text": format!("text of {}", asked["id"].as_str().unwrap())}))
                .collect();
            serde_json::json!({"data": {"_entities": entities}}).to_string()
        } else {
            r#"{"data":{"ping":1}}"#.to_owned()
        };
        let head = "content-type: application/json\r\n";
        if stream
            .write_all(&answer(200, head, body.as_bytes()))
            .is_err()
        {
            return;
        }
    }
}

impl FeedStream {
    fn write(&mut self, text: &str) {
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        self.stream.write_all(chunk.as_bytes()).unwrap();
    }
    /// Answers what was withheld, with JSON.
    pub(crate) fn answer(&mut self, status: u16, body: &str) {
        let head = "content-type: application/json\r\n";
        let answer = answer(status, head, body.as_bytes());
        self.stream.write_all(&answer).unwrap();
    }
    /// Sends an event.
    pub(crate) fn send(&mut self, data: &str) {
        self.write(&format!("event: next\ndata: {{\"data\":{data}}}\n\n"));
    }
    /// Sends events that arrive together.
    pub(crate) fn send_together(&mut self, data: impl Iterator<Item = String>) {
        let events = data.map(|data| format!("event: next\ndata: {{\"data\":{data}}}\n\n"));
        self.write(&events.collect::<String>());
    }
    /// Sends a review unless the gateway has left; says whether it has not.
    pub(crate) fn try_add(&mut self, id: &str) -> bool {
        let data = format!(r#"{{"added":{{"__typename":"Review","id":"{id}"}}}}"#);
        let text = format!("event: next\ndata: {{\"data\":{data}}}\n\n");
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        self.stream.write_all(chunk.as_bytes()).is_ok()
    }
    /// Refuses the subscription, or gives it up.
    pub(crate) fn refuse(&mut self, message: &str) {
        self.write(&format!(
            "event: next\ndata: {{\"errors\":[{{\"message\":\"{message}\"}}]}}\n\n"
        ));
    }
    /// A review was added.
    pub(crate) fn add(&mut self, id: &str) {
        self.send(&format!(
            r#"{{"added":{{"__typename":"Review","id":"{id}"}}}}"#
        ));
    }
    /// Sends long events until the gateway takes no more; says whether it has left, rather than taken as many as there are.
    pub(crate) fn flood(mut self, events: usize) -> bool {
        let long = "x".repeat(1 << 20);
        (0..events).any(|_| !self.try_add(&long))
    }
    /// There are no more events.
    pub(crate) fn complete(mut self) {
        self.write("event: complete\ndata:\n\n");
        self.stream.write_all(b"0\r\n\r\n").unwrap();
    }
    /// The subgraph is gone in the middle.
    pub(crate) fn break_off(self) {
        drop(self);
    }
    /// Waits until the gateway has left.
    pub(crate) fn wait_until_left(mut self) {
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let read = self.stream.read(&mut [0; 16]);
        assert!(
            matches!(read, Ok(0))
                || read.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset)
        );
    }
}
