//! The REST services of seed 002: products, an offer for each, instalments for each, every answer held back.
//!
//! Paths follow the published stub (`/multiProducts`, `/offer`, `/installments`, `responseTime` in milliseconds); the
//! data is that of `bench/graphs/chain`. `/stats` counts requests in the words of the mock server.

use std::{
    io,
    rc::Rc,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::LocalSet,
};

use crate::{Error, Result};

/// Longest head of a request.
const HEAD_MAX: usize = 16 << 10;
/// Longest delay a request may ask for.
const DELAY_MAX: Duration = Duration::from_secs(60);

/// Serves until the process ends.
pub fn serve(listen: &str, delay: Duration) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::system("the REST services could not be started"))?;
    let serving = async move {
        let listener = TcpListener::bind(listen).await?;
        let requests = Rc::new(AtomicU64::new(0));
        loop {
            let (stream, _) = listener.accept().await?;
            let requests = requests.clone();
            tokio::task::spawn_local(async move {
                // A client that leaves is nobody's problem.
                let _ = connection(stream, delay, &requests).await;
            });
        }
    };
    let served: io::Result<()> = LocalSet::new().block_on(&runtime, serving);
    served.map_err(Error::system("the REST services ended"))
}

async fn connection(
    mut stream: TcpStream,
    delay: Duration,
    requests: &AtomicU64,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; HEAD_MAX];
    let mut filled = 0;
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Request::new(&mut headers);
        let parsed = head
            .parse(&buffer[..filled])
            .map_err(|_| io::ErrorKind::InvalidData)?;
        let httparse::Status::Complete(length) = parsed else {
            let n = stream.read(&mut buffer[filled..]).await?;
            if n == 0 {
                return Ok(());
            }
            filled += n;
            continue;
        };
        let (body, held) = answer(
            head.method.unwrap_or(""),
            head.path.unwrap_or(""),
            delay,
            requests,
        );
        buffer.copy_within(length..filled, 0);
        filled -= length;
        if !held.is_zero() {
            tokio::time::sleep(held).await;
        }
        let (status, body) = match body {
            Some(body) => ("200 OK", body.to_string()),
            None => ("404 Not Found", "{}".to_owned()),
        };
        let text = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(text.as_bytes()).await?;
    }
}

fn answer(
    method: &str,
    target: &str,
    delay: Duration,
    requests: &AtomicU64,
) -> (Option<Value>, Duration) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let parameter = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.to_owned())
    };
    let stats =
        || json!({ "total": { "requests": requests.load(Ordering::Relaxed), "bytes_out": 0 } });
    let body = match (method, path) {
        ("GET", "/health") => return (Some(json!("OK")), Duration::ZERO),
        ("GET", "/stats") => return (Some(stats()), Duration::ZERO),
        ("POST", "/stats/reset") | ("DELETE", "/stats") => {
            requests.store(0, Ordering::Relaxed);
            return (Some(stats()), Duration::ZERO);
        }
        ("GET", "/multiProducts") => {
            let product =
                |id: u32| json!({ "id": id.to_string(), "name": format!("Product {id}") });
            json!([product(1), product(2), product(3)])
        }
        ("GET", "/offer") => match parameter("productId") {
            Some(id) => json!({ "id": format!("o{id}"), "price": 1299.5 }),
            None => return (None, Duration::ZERO),
        },
        ("GET", "/installments") => json!({ "installments": [433.5, 433.0, 433.0] }),
        _ => return (None, Duration::ZERO),
    };
    requests.fetch_add(1, Ordering::Relaxed);
    let asked = parameter("responseTime")
        .and_then(|ms| ms.parse().ok())
        .map(Duration::from_millis);
    (Some(body), asked.unwrap_or(delay).min(DELAY_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_counts() {
        let requests = AtomicU64::new(0);
        let ask = |target: &str| answer("GET", target, Duration::from_secs(1), &requests);
        let (body, held) = ask("/offer?productId=2&responseTime=5");
        assert_eq!(
            (body, held),
            (
                Some(json!({"id": "o2", "price": 1299.5})),
                Duration::from_millis(5)
            )
        );
        assert_eq!(ask("/multiProducts").1, Duration::from_secs(1));
        assert_eq!(ask("/nothing").0, None);
        assert_eq!(ask("/stats").0.unwrap()["total"]["requests"], json!(2));
    }
}
