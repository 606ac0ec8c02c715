//! Loads of events before gateways that are but tunnels to the source, honest ones and others.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
};

use ogive_bench::{
    campaign,
    model::Lab,
    record::{Run, Verdict},
};

use crate::helpers::prepared;

/// After so many events a tunnel misbehaves: more than a check has.
const EVENTS_BEFORE: usize = 60;

/// Passes everything on to the source of events, but for what its behaviour is.
pub(crate) fn tunnel(behaviour: &str) {
    let env = |name: &str| std::env::var(name).unwrap();
    let listener = TcpListener::bind(("127.0.0.1", env("PORT").parse().unwrap())).unwrap();
    for client in listener.incoming() {
        let (client, upstream) = (client.unwrap(), env("UPSTREAM"));
        let behaviour = behaviour.to_owned();
        std::thread::spawn(move || {
            let source = TcpStream::connect(upstream).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), source.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
            let _ = back(source, &client, &behaviour);
            let _ = client.shutdown(Shutdown::Both);
        });
    }
}

fn back(source: TcpStream, mut client: &TcpStream, behaviour: &str) -> io::Result<()> {
    let mut source = BufReader::new(source);
    let mut chunked = false;
    if behaviour != "tunnel" {
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if source.read_line(&mut line)? == 0 {
                return Ok(());
            }
            chunked |= line.starts_with("transfer-encoding");
            client.write_all(line.as_bytes())?;
        }
    }
    if !chunked {
        return io::copy(&mut source, &mut client).map(drop);
    }
    for n in 1.. {
        let mut chunk = String::new();
        source.read_line(&mut chunk)?;
        let size = usize::from_str_radix(chunk.trim(), 16).map_err(io::Error::other)?;
        let mut content = vec![0; size + 2];
        source.read_exact(&mut content)?;
        chunk.push_str(&String::from_utf8_lossy(&content));
        let late = n > EVENTS_BEFORE;
        match behaviour {
            "tunnel-loses" if late && n.is_multiple_of(10) => continue,
            "tunnel-ends" if late => return Ok(()),
            // Seen among those that are kept, which are every so many after the first.
            "tunnel-alters" if late => chunk = chunk.replace("A change", "B change"),
            _ => {}
        }
        client.write_all(chunk.as_bytes())?;
    }
    Ok(())
}

fn measured(name: &str, behaviours: &[&str], subscribers: &str, load: &str) -> Vec<Run> {
    let (_, order, equipment) =
        prepared(name, behaviours, "shape = { kind = \"starts\", count = 1 }");
    let root = order.folder.parent().unwrap();
    for behaviour in behaviours {
        let path = root.join("gateways").join(behaviour).join("gateway.toml");
        let text = fs::read_to_string(&path).unwrap();
        let text = text.replace("[\"federation\"]", "[\"subscriptions\"]")
            + "[subscriptions]\nclients = [\"websocket\", \"sse\"]\n[subscriptions.sources.sse]\n";
        fs::write(path, text).unwrap();
    }
    let scenario = format!(
        "title = \"Test\"\ngoal = \"Does the lab see it?\"\nkey = \"lost\"\ncaveats = [\"a test\"]\n\
         roles = [\"subscriptions\"]\ngraph = \"events\"\noperation = \"tick\"\n\
         [subscribers]\nsource = \"sse\"\n{subscribers}\n[load]\nwarmup = \"0s\"\n{load}\n"
    );
    fs::write(root.join("scenarios/test.toml"), scenario).unwrap();
    let lab = Lab::read(root).unwrap_or_else(|error| panic!("{error}"));
    let ran = campaign::run(&lab, &order, &equipment, Box::new(|_| {}));
    ran.unwrap_or_else(|error| panic!("{error}")).1
}

fn of<'a>(runs: &'a [Run], gateway: &str) -> &'a Run {
    let found = runs.iter().find(|r| r.gateway == gateway && r.round == 1);
    found.unwrap_or_else(|| panic!("{gateway} did not run: {runs:?}"))
}

const BURST: &str = "shape = { kind = \"burst\", events = 400, within = \"60s\" }";

#[test]
fn events_that_do_not_come_are_counted_and_whether_somebody_was_told() {
    let behaviours = ["tunnel", "tunnel-loses", "tunnel-ends", "tunnel-alters"];
    let runs = measured(
        "events-lost",
        &behaviours,
        "count = 4\nclient = \"sse\"",
        BURST,
    );

    let honest = of(&runs, "tunnel");
    assert_eq!(honest.verdict, Verdict::Ok);
    let delivery = honest.delivery.unwrap();
    let counts = (delivery.wanted, delivery.delivered, delivery.upstreams);
    assert_eq!(counts, (1600, 1600, 4));
    assert_eq!(
        (delivery.silent, delivery.told, delivery.disordered),
        (0, 0, 0)
    );
    let load = honest.load.as_ref().unwrap();
    assert_eq!((load.answered, load.failed), (1600, 0));
    assert!(load.millis("p99").unwrap() < 60_000.0, "{load:?}");
    assert!(honest.checked.during > 0, "{:?}", honest.checked);

    let loses = of(&runs, "tunnel-loses").delivery.unwrap();
    assert!((1400..1600).contains(&loses.delivered), "{loses:?}");
    assert_eq!((loses.silent, loses.told), (1600 - loses.delivered, 0));

    let ends = of(&runs, "tunnel-ends").delivery.unwrap();
    assert!(ends.delivered < 400, "{ends:?}");
    assert_eq!((ends.silent, ends.told), (0, 4));

    let alters = &of(&runs, "tunnel-alters").verdict;
    assert!(matches!(alters, Verdict::Disqualified(_)), "{alters:?}");
}

#[test]
fn subscribers_of_websockets_get_everything_at_a_rate() {
    let load = "shape = { kind = \"events\", rate = 100, duration = \"300ms\" }\nsettle = \"10s\"";
    let runs = measured(
        "events-rate",
        &["tunnel"],
        "count = 5\ndistinct = true",
        load,
    );
    let run = of(&runs, "tunnel");
    assert_eq!(run.verdict, Verdict::Ok);
    let delivery = run.delivery.unwrap();
    assert_eq!(
        (delivery.events, delivery.delivered, delivery.told),
        (30, 150, 0)
    );
    assert!(run.usage.is_some());
}
