//! Framing without sockets: every case in one piece and cut at every byte, and random answers cut at random places.

use bytes::BytesMut;
use http::header;
use ogive_testbase::Rng;

use super::*;

/// What an answer was read as.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Read {
    status: u16,
    body: Vec<u8>,
    /// Whether the connection may be used again.
    reusable: bool,
}

/// Reads an answer whose bytes come in these pieces, and then the end of the connection.
fn read<'p>(pieces: impl IntoIterator<Item = &'p [u8]>, is_head: bool) -> Result<Read, String> {
    let mut buffer = BytesMut::new();
    let mut reader = HeadReader::new(HeaderScope::All, is_head);
    let mut answer: Option<(Head, Body)> = None;
    for piece in pieces {
        buffer.extend_from_slice(piece);
        if answer.is_none() {
            let head = reader.read(&mut buffer).map_err(|why| why.to_string())?;
            answer = head.map(|head| {
                let body = Body::new(head.framing);
                (head, body)
            });
        }
        if let Some((head, body)) = &mut answer
            && head.framing != Framing::UntilClose
            && body.read(&mut buffer).map_err(|why| why.to_string())?
        {
            break;
        }
    }
    let (head, mut body) = answer.ok_or("no head")?;
    let whole = body.read(&mut buffer).map_err(|why| why.to_string())?;
    if !whole && !body.may_end() {
        return Err("no whole body".into());
    }
    assert!(body.announced() >= body.len() as u64);
    let (bytes, clean) = body.take(&mut buffer);
    assert!(buffer.is_empty());
    Ok(Read {
        status: head.status.as_u16(),
        body: bytes.to_vec(),
        reusable: clean && head.keep_alive,
    })
}

fn ok(status: u16, body: &str, reusable: bool) -> Result<Read, String> {
    Ok(Read {
        status,
        body: body.into(),
        reusable,
    })
}

/// A head with these lines, and what follows it.
fn answer(lines: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{lines}\r\n{body}")
}

#[test]
fn answers_end_where_the_specification_says() {
    let chunked = "transfer-encoding: chunked\r\n";
    let cases: Vec<(String, &str, bool)> = vec![
        (answer("content-length: 2\r\n", "{}"), "{}", true),
        (answer("Content-Length:2 \r\n", "{}"), "{}", true),
        (answer("content-length: 0\r\n", ""), "", true),
        (answer("content-length: 2, 2\r\ncontent-length: 002\r\n", "{}"), "{}", true),
        (answer("content-length: 2\r\nconnection: close\r\n", "{}"), "{}", false),
        (answer("content-length: 2\r\nconnection: x, Close\r\nconnection: keep-alive\r\n", "{}"), "{}", false),
        (answer("content-length: 2\r\n", "{}HTTP/1.1 200 OK\r\n"), "{}", false),
        (answer("", "to the end"), "to the end", false),
        (answer(chunked, "2\r\n{}\r\n0\r\n\r\n"), "{}", true),
        (answer(chunked, "0\r\n\r\n"), "", true),
        (answer(chunked, "1\r\n{\r\n0001 \t\r\n}\r\n000\r\n\r\n"), "{}", true),
        (answer(chunked, "A;a=b;c=\"d\"\r\n0123456789\r\n1 ; x\r\n.\r\n0;last\r\n\r\n"), "0123456789.", true),
        (answer(chunked, "2\r\n{}\r\n0\r\nX-Sum: 1\r\nx: \r\n\r\n"), "{}", true),
        (answer(chunked, "2\r\n{}\r\n0\r\n\r\nmore"), "{}", false),
        (answer("Transfer-Encoding: gzip\r\nTRANSFER-ENCODING: , Chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"), "{}", true),
        (answer("content-length: 9\r\ntransfer-encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"), "{}", false),
        (answer("transfer-encoding: gzip\r\ncontent-length: 1\r\n", "to the end"), "to the end", false),
        (answer("transfer-encoding: identity\r\n", "to the end"), "to the end", false),
        ("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}".into(), "{}", false),
        ("HTTP/1.0 200 OK\r\ncontent-length: 2\r\nconnection: Keep-Alive\r\n\r\n{}".into(), "{}", true),
        ("HTTP/1.0 200 OK\r\n\r\n{}".into(), "{}", false),
        // Lenient: no reason phrase, and lines that end without `\r`.
        ("HTTP/1.1 200\ncontent-length: 2\n\n{}".into(), "{}", true),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\ncontent-length: 7\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".into(), "{}", true),
    ];
    for (text, body, reusable) in cases {
        let expected = ok(200, body, reusable);
        assert_eq!(read([text.as_bytes()], false), expected, "{text}");
        for at in 0..text.len() {
            let (a, b) = text.as_bytes().split_at(at);
            let cut = read([a, b], false);
            // What comes after an answer may come too late to be seen.
            let seen = cut.clone().map(|read| Read { reusable, ..read });
            assert_eq!(seen, expected, "{text} cut at {at}");
            assert!(text.contains("{}HTTP") || text.ends_with("more") || cut == expected);
        }
        let drops = read(text.as_bytes().chunks(1), false);
        assert_eq!(drops.unwrap().body, body.as_bytes(), "{text}");
    }
}

#[test]
fn some_answers_have_no_body_whatever_they_say() {
    for (status, is_head) in [(204, false), (304, false), (200, true), (404, true)] {
        for lines in [
            "content-length: 9\r\n",
            "transfer-encoding: chunked\r\n",
            "",
        ] {
            let text = format!("HTTP/1.1 {status} X\r\n{lines}\r\n");
            let expected = ok(status, "", true);
            assert_eq!(read([text.as_bytes()], is_head), expected, "{text}");
            let more = format!("{text}2\r\n");
            assert_eq!(read([more.as_bytes()], is_head), ok(status, "", false));
        }
    }
}

#[test]
fn an_answer_that_is_cut_short_is_never_whole() {
    for text in [
        answer("content-length: 12\r\n", "{\"data\":null}").as_str(),
        answer(
            "transfer-encoding: chunked\r\n",
            "2;x\r\n{}\r\n3\r\n   \r\n0\r\na: b\r\n\r\n",
        )
        .as_str(),
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n",
    ] {
        let whole = text.len() - usize::from(text.ends_with("null}"));
        for end in 0..whole {
            let short = &text.as_bytes()[..end];
            assert!(read([short], false).is_err(), "{text} up to {end}");
        }
    }
}

#[test]
fn what_is_no_answer_is_refused() {
    let many = |line: &str, times| answer(&line.repeat(times), "");
    let chunks = |chunks: &str| answer("transfer-encoding: chunked\r\n", chunks);
    let cases: Vec<(String, &str)> = vec![
        ("SSH-2.0-OpenSSH_9.6\r\n".into(), "does not begin"),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n".into(), "does not begin"),
        ("HTTP/2 200 OK\r\n\r\n".into(), "does not begin"),
        ("HTTP/1.1 2x0 OK\r\n\r\n".into(), "status"),
        ("HTTP/1.1 099 OK\r\n\r\n".into(), "status"),
        (
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n".into(),
            "switches protocols",
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\n".repeat(INTERIM_MAX + 1),
            "interim",
        ),
        (answer("a b: c\r\n", ""), "name"),
        (answer("a : c\r\n", ""), "name"),
        (answer(": c\r\n", ""), "name"),
        (answer("a: b\r\n c\r\n", ""), "name"),
        (answer("a: b\0\r\n", ""), "value"),
        (answer("a: b\r\rc\r\n", ""), "value"),
        (many("a: b\r\n", HEADERS_MAX + 1), "more than 100 headers"),
        (
            many(&format!("a: {}\r\n", "b".repeat(1 << 10)), 64),
            "longer than 64 KiB",
        ),
        (
            answer(&format!("a: {}", "b".repeat(HEAD_MAX)), ""),
            "longer than 64 KiB",
        ),
        (
            answer("content-length: 2\r\ncontent-length: 3\r\n", "{}"),
            "several lengths",
        ),
        (answer("content-length: 2, 3\r\n", "{}"), "several lengths"),
        (answer("content-length: \r\n", "{}"), "no number"),
        (answer("content-length: +2\r\n", "{}"), "no number"),
        (answer("content-length: 0x2\r\n", "{}"), "no number"),
        (answer("content-length: 2,\r\n", "{}"), "no number"),
        (
            answer("content-length: 18446744073709551616\r\n", "{}"),
            "no number",
        ),
        (
            answer("transfer-encoding: chunked, gzip\r\n", "0\r\n\r\n"),
            "last transfer coding",
        ),
        (
            answer(
                "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
                "0\r\n\r\n",
            ),
            "last transfer coding",
        ),
        (
            "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".into(),
            "in HTTP/1.0",
        ),
        (chunks("nonsense\r\n"), "size of a chunk"),
        (chunks("\r\n\r\n"), "size of a chunk"),
        (chunks(" 2\r\n{}\r\n"), "size of a chunk"),
        (chunks("-2\r\n{}\r\n"), "size of a chunk"),
        (chunks("2 2\r\n{}\r\n"), "size of a chunk"),
        (chunks("2\n{}\n"), "size of a chunk"),
        (chunks("2;a\n{}\n"), "size of a chunk"),
        (chunks("2\rx{}\r\n"), "size of a chunk"),
        (chunks("00000000000000002\r\n{}\r\n"), "size of a chunk"),
        (chunks("2\r\n{}}\r\n"), "longer than its size"),
        (chunks("2\r\n{}\n0\r\n\r\n"), "longer than its size"),
        (chunks("2\r\n{}\rx"), "longer than its size"),
        (
            chunks(&format!("2;{}\r\n", "x".repeat(EXTENSIONS_MAX))),
            "extensions are longer",
        ),
        (
            chunks(&"1;12345678\r\nx\r\n".repeat(EXTENSIONS_MAX / 8)),
            "extensions are longer",
        ),
        (
            chunks(&format!("0\r\n{}\r\n", "x".repeat(TRAILERS_MAX + 1))),
            "trailers are longer",
        ),
        (
            chunks(&format!(
                "0\r\n{}\r\n",
                "x: y\r\n".repeat(TRAILERS_MAX / 4 + 1)
            )),
            "trailers are longer",
        ),
        (chunks("0\r\na: b\n\r\n"), "trailers are malformed"),
        (chunks("0\r\n\n"), "trailers are malformed"),
        (chunks("0\r\na: b\rc\r\n\r\n"), "trailers are malformed"),
    ];
    for (text, why) in cases {
        let shown = &text[..text.len().min(200)];
        let error = read([text.as_bytes()], false).unwrap_err();
        assert!(error.contains(why), "{shown}: {error}");
        assert!(error.starts_with("the answer is no HTTP/1.1: "), "{error}");
        assert!(read(text.as_bytes().chunks(1), false).is_err(), "{shown}");
    }
    // As much as is allowed.
    assert!(read([many("a: b\r\n", HEADERS_MAX).as_bytes()], false).is_ok());
    let lines = format!("a: {}\r\n", "b".repeat(HEAD_MAX - 24));
    let longest = answer(&lines, "");
    assert_eq!(longest.len(), HEAD_MAX);
    assert!(read([longest.as_bytes()], false).is_ok());
}

#[test]
fn a_size_beyond_memory_is_only_announced() {
    let text = answer("transfer-encoding: chunked\r\n", "ffffffffffffffff\r\nab");
    let mut buffer = BytesMut::from(text.as_bytes());
    let mut reader = HeadReader::new(HeaderScope::Deciding, false);
    let head = reader.read(&mut buffer).unwrap().unwrap();
    let mut body = Body::new(head.framing);
    assert_eq!(body.read(&mut buffer), Ok(false));
    assert_eq!((body.len(), body.announced()), (2, u64::MAX));
}

#[test]
fn a_body_in_one_chunk_stays_where_it_is() {
    let text = answer("transfer-encoding: chunked\r\n", "5\r\n{a:b}\r\n0\r\n\r\n");
    let mut buffer = BytesMut::from(text.as_bytes());
    let at = buffer.as_ptr() as usize + text.find('{').unwrap();
    let head = HeadReader::new(HeaderScope::Deciding, false).read(&mut buffer);
    let mut body = Body::new(head.unwrap().unwrap().framing);
    assert_eq!(body.read(&mut buffer), Ok(true));
    let (bytes, clean) = body.take(&mut buffer);
    assert_eq!(
        (bytes.as_ptr() as usize, &bytes[..], clean),
        (at, &b"{a:b}"[..], true)
    );
}

#[test]
fn only_headers_that_somebody_wants_are_kept() {
    let lines = "Location: /a\r\nx-a: 1\r\nRetry-After: 2\r\ncontent-encoding: gzip\r\nx-a: 2\r\ncontent-length: 0\r\n";
    let read = |wanted| {
        let mut buffer = BytesMut::from(answer(lines, "").as_bytes());
        HeadReader::new(wanted, false)
            .read(&mut buffer)
            .unwrap()
            .unwrap()
            .headers
    };
    let all = read(HeaderScope::All);
    assert_eq!((all.len(), all.get_all("x-a").iter().count()), (6, 2));
    let few = read(HeaderScope::Deciding);
    assert_eq!(few.len(), 3);
    assert_eq!(few[header::LOCATION], "/a");
    assert_eq!(few[header::RETRY_AFTER], "2");
    assert_eq!(few[header::CONTENT_ENCODING], "gzip");
}

/// Answers, and ways to cut them.
struct Random(Rng);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit)
    }
    fn cut<'b>(&mut self, mut bytes: &'b [u8]) -> Vec<&'b [u8]> {
        let mut pieces = Vec::new();
        let longest = [1, 3, 40, 400][self.below(4)];
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at((self.below(longest) + 1).min(bytes.len()));
            pieces.push(piece);
            bytes = rest;
        }
        pieces
    }
    /// A valid answer and its body.
    fn answer(&mut self) -> (Vec<u8>, Vec<u8>) {
        let mut out = Vec::new();
        for _ in 0..self.below(3) {
            out.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n");
        }
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        for n in 0..self.below(5) {
            out.extend_from_slice(format!("x-{n}: {}\r\n", "v".repeat(self.below(60))).as_bytes());
        }
        let size = [0, 2, 50, 700][self.below(4)];
        let body: Vec<u8> = (0..size)
            .map(|_| b"{}\r\n0a;:\xff"[self.below(9)])
            .collect();
        match self.below(3) {
            0 => {
                out.extend_from_slice(format!("content-length: {size}\r\n\r\n").as_bytes());
                out.extend_from_slice(&body);
            }
            1 => {
                out.extend_from_slice(b"connection: close\r\n\r\n");
                out.extend_from_slice(&body);
            }
            _ => {
                out.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
                for piece in self.cut(&body) {
                    let extension = ["", ";a", " ;b=\"c\""][self.below(3)];
                    out.extend_from_slice(format!("{:03X}{extension}\r\n", piece.len()).as_bytes());
                    out.extend_from_slice(piece);
                    out.extend_from_slice(b"\r\n");
                }
                let trailers = ["", "x-sum: 1\r\n"][self.below(2)];
                out.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
            }
        }
        (out, body)
    }
}

#[test]
fn cuts_change_nothing() {
    let mut random = Random(Rng::new(1));
    for _ in 0..3_000 {
        let (mut bytes, body) = random.answer();
        let whole = read([&bytes[..]], false).unwrap();
        assert_eq!(whole.body, body);
        assert_eq!(read(random.cut(&bytes), false), Ok(whole));
        // Damaged ones, too: both ways are refused, or read alike.
        let at = random.below(bytes.len());
        bytes[at] = b"\r\n 0;9aZ\0:"[random.below(10)];
        let pieces = random.cut(&bytes);
        let (whole, cut) = (read([&bytes[..]], false), read(pieces, false));
        let shown = String::from_utf8_lossy(&bytes);
        match (&whole, &cut) {
            (Ok(whole), Ok(cut)) => assert_eq!(
                (&whole.body, whole.status),
                (&cut.body, cut.status),
                "{shown}"
            ),
            (Err(_), Err(_)) => {}
            _ => panic!("{whole:?} {cut:?} {shown}"),
        }
    }
}
