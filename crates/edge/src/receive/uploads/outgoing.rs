//! Requests with files to subgraphs: `operations`, `map` and the files, under numbers of their own.

use bytes::Bytes;
use http::HeaderValue;
use ogive_telemetry::codes;
use ogive_transport::{Attachment, FeedError, Files, PieceSender, upload::channel};
use serde_json::{Map, Value};

use crate::json_value;
use crate::receive::uploads::{Uploads, read_queue::ReadPermit};

/// A file that a request wants, and where in its operation.
struct Wanted {
    file: usize,
    paths: Vec<String>,
}

impl Files for Uploads {
    fn attach<'a>(&'a self, body: &Bytes) -> Option<Attachment<'a>> {
        self.tokens(body).next()?;
        let (sender, pieces) = channel();
        let boundary = format!("ogive{}", &self.token["file ".len()..]);
        let content_type = format!("multipart/form-data; boundary={boundary}");
        let wanted = self.wanted(body);
        let first = wanted.iter().flatten().next().map_or(0, |w| w.file);
        // From now on others whose files come later wait.
        let permit = self.readers.join(first);
        let operations = self.without_tokens(body);
        Some(Attachment {
            content_type: HeaderValue::try_from(content_type).ok()?,
            pieces,
            feed: Box::pin(async move {
                let wanted = wanted.ok_or_else(|| FeedError::Refused {
                    code: codes::EXECUTION_LIMIT_EXCEEDED,
                    message: "a request with files is nested too deeply".into(),
                })?;
                self.feed(&boundary, operations, wanted, permit, sender)
                    .await
            }),
        })
    }

    fn answered(&self) {
        self.answered.set(true);
    }

    fn held(&self) -> usize {
        self.kept_bytes.get()
    }
}

impl Uploads {
    /// The files that a request's variables hold, in the order in which they come; `None` if it cannot be read.
    fn wanted(&self, body: &[u8]) -> Option<Vec<Wanted>> {
        let mut body = json_value::read(body).ok()?;
        let mut wanted: Vec<Wanted> = Vec::new();
        let mut open = vec![("variables".to_owned(), body.get_mut("variables")?.take())];
        while let Some((path, value)) = open.pop() {
            match value {
                Value::Object(members) => {
                    let below = members.into_iter().map(|(k, v)| (format!("{path}.{k}"), v));
                    open.extend(below);
                }
                Value::Array(items) => {
                    let below = items.into_iter().enumerate();
                    open.extend(below.map(|(i, v)| (format!("{path}.{i}"), v)));
                }
                Value::String(text) => {
                    let number = text.strip_prefix(&*self.token);
                    let Some(file) = number.and_then(|n| n.trim_start().parse().ok()) else {
                        continue;
                    };
                    match wanted.iter_mut().find(|w| w.file == file) {
                        Some(same) => same.paths.push(path),
                        None => wanted.push(Wanted {
                            file,
                            paths: vec![path],
                        }),
                    }
                }
                _ => {}
            }
        }
        wanted.sort_by_key(|w| w.file);
        wanted.iter_mut().for_each(|w| w.paths.sort());
        Some(wanted)
    }

    /// A request's body with null where files belong.
    fn without_tokens(&self, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(body.len());
        let mut from = 0;
        for (at, _) in self.tokens(body) {
            // A token is a whole string, so there are quotation marks around it.
            let end = body[at..].iter().position(|b| *b == b'"');
            let Some(end) = end.filter(|_| at > from) else {
                continue;
            };
            out.extend_from_slice(&body[from..at - 1]);
            out.extend_from_slice(b"null");
            from = at + end + 1;
        }
        out.extend_from_slice(&body[from..]);
        out
    }

    /// Writes a whole body.
    async fn feed(
        &self,
        boundary: &str,
        operations: Vec<u8>,
        wanted: Vec<Wanted>,
        mut permit: ReadPermit<'_>,
        out: PieceSender,
    ) -> Result<(), FeedError> {
        permit.granted().await;
        let map: Map<String, Value> = wanted
            .iter()
            .enumerate()
            .map(|(number, wanted)| (number.to_string(), wanted.paths.clone().into()))
            .collect();
        let part =
            |name: &str| format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"");
        let mut begin = part("operations").into_bytes();
        begin.extend_from_slice(b"\r\n\r\n");
        begin.extend_from_slice(&operations);
        let map = format!("\r\n{}\r\n\r\n{}", part("map"), Value::Object(map));
        begin.extend_from_slice(map.as_bytes());
        out.send(begin).await?;
        for (number, wanted) in wanted.iter().enumerate() {
            let begin = format!("\r\n{}", part(&number.to_string()));
            self.forward(wanted.file, &begin, &out).await?;
        }
        out.send(format!("\r\n--{boundary}--\r\n")).await?;
        out.end().await
    }
}
