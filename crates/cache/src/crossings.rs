//! No caller is given what another one was answered: random requests, answers and times. And each part of a key is needed:
//! the test fails without it.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_base::MemoryBudget;
use ogive_testbase::Rng;

use crate::{
    Answer, CacheOptions, CallerKey, Content, EntryKind, Exchange, KeyParts, KeySecret,
    ResponseCache, StoringPolicy, Timestamp, Use, Write, canonical, decide, key::Ingredient,
};

/// Operations of one world.
const STEPS: usize = 200;
const WORLDS: u64 = 1_000;

/// All that a request says; each part has few values, so that requests are often nearly equal.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Request {
    subgraph: usize,
    url: usize,
    schema: usize,
    extensions: usize,
    is_entity: usize,
    text: usize,
    variables: usize,
    representation: usize,
    /// The values of `x-a` and `x-b`; 0 is none.
    headers: [usize; 2],
    credentials: usize,
    cookie: usize,
    private_id: usize,
}

/// Three representations, two of which are equal.
const REPRESENTATIONS: [&str; 3] = [r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, r#"{"a":2,"b":1}"#];
const NAMES: [&str; 2] = ["x-a", "x-b"];
/// What a subgraph says besides `max-age`.
const WORDS: [&str; 6] = [
    "",
    "public",
    "s-maxage=60",
    "private",
    "must-revalidate",
    "no-store",
];

impl Request {
    /// Another value in one place.
    fn vary(&mut self, rng: &mut Rng) {
        let value = rng.below(2);
        match rng.below(13) {
            0 => self.subgraph = value,
            1 => self.url = value,
            2 => self.schema = value,
            3 => self.extensions = value,
            4 => self.is_entity = value,
            5 => self.text = value,
            6 => self.variables = value,
            7 => self.representation = rng.below(3),
            8 => self.headers[0] = rng.below(3),
            9 => self.headers[1] = rng.below(3),
            10 => self.credentials = rng.below(3),
            11 => self.cookie = value,
            _ => self.private_id = rng.below(3),
        }
    }

    fn key_parts(&self) -> KeyParts<'static> {
        let pick = |texts: [&'static str; 2], at: usize| texts[at].as_bytes();
        KeyParts {
            subgraph: ["a", "b"][self.subgraph],
            url: ["http://a/", "http://b/"][self.url],
            schema: self.schema as u128,
            extensions: pick(["", r#"{"e":1}"#], self.extensions),
            content: match self.is_entity {
                0 => Content::Whole {
                    body: pick(["{a}", "{b}"], self.text),
                },
                _ => Content::Entity {
                    selection: pick(["{a}", "{b}"], self.text),
                    variables: pick(["{}", r#"{"v":1}"#], self.variables),
                    representation: REPRESENTATIONS[self.representation].as_bytes(),
                },
            },
        }
    }

    fn headers(&self) -> HeaderMap {
        let mut out = HeaderMap::new();
        let mut add = |name, value: usize| {
            if value > 0 {
                let name = HeaderName::from_static(name);
                out.insert(name, HeaderValue::from(value as u64));
            }
        };
        add(NAMES[0], self.headers[0]);
        add(NAMES[1], self.headers[1]);
        add("authorization", self.credentials);
        add("cookie", self.cookie);
        out
    }

    fn private_id(&self) -> Option<&'static [u8]> {
        [None, Some(&b"one"[..]), Some(b"two")][self.private_id]
    }

    /// Whether both ask for one thing.
    fn asks_for_what(&self, other: &Request) -> bool {
        let equal = |of: fn(&Request) -> usize| of(self) == of(other);
        let canonical_form = |r: &Request| canonical(REPRESENTATIONS[r.representation].as_bytes());
        equal(|r| r.subgraph)
            && equal(|r| r.url)
            && equal(|r| r.schema)
            && equal(|r| r.extensions)
            && equal(|r| r.is_entity)
            && equal(|r| r.text)
            && (self.is_entity == 0
                || equal(|r| r.variables) && canonical_form(self) == canonical_form(other))
    }
}

/// What a subgraph said with an answer, to whom and when.
#[derive(Clone, Debug)]
struct Said {
    to: Request,
    at: Timestamp,
    max_age: u64,
    /// `x-a`, `x-b`, if it says `Vary`.
    vary: Option<[bool; 2]>,
    word: &'static str,
}

impl Said {
    fn random(to: &Request, at: Timestamp, rng: &mut Rng) -> Self {
        let names = [[true, false], [false, true], [true, true]];
        Said {
            to: to.clone(),
            at,
            max_age: rng.below(60) as u64,
            vary: rng.chance(60).then(|| *rng.pick(&names)),
            word: WORDS[rng.below(WORDS.len())],
        }
    }

    fn headers(&self) -> HeaderMap {
        let mut out = HeaderMap::new();
        let text = format!("max-age={}, {}", self.max_age, self.word);
        let value = HeaderValue::from_str(&text).unwrap();
        out.insert("cache-control", value);
        let names = NAMES.iter().enumerate();
        for (_, name) in names.filter(|(at, _)| self.vary.is_some_and(|vary| vary[*at])) {
            out.append("vary", HeaderValue::from_static(name));
        }
        out
    }

    /// Why it must not be given to a request, if it must not.
    fn crosses(&self, request: &Request, now: Timestamp) -> Option<&'static str> {
        let seconds = if self.word == "s-maxage=60" {
            60
        } else {
            self.max_age
        };
        let differs = |at: usize| self.to.headers[at] != request.headers[at];
        let is_named = |at: usize| self.vary.is_none_or(|vary| vary[at]);
        let is_everyones = matches!(self.word, "public" | "s-maxage=60" | "private");
        let same_credentials =
            self.to.credentials == request.credentials && self.to.cookie == request.cookie;
        if self.word == "no-store" {
            Some("no-store")
        } else if now.since(self.at) >= Duration::from_secs(seconds) {
            Some("over")
        } else if !self.to.asks_for_what(request) {
            Some("something else")
        } else if (0..2).any(|at| is_named(at) && differs(at)) {
            Some("other headers")
        } else if !is_everyones && !same_credentials {
            Some("other credentials")
        } else if self.word == "private" && self.to.private_id != request.private_id {
            Some("another one's")
        } else {
            None
        }
    }
}

#[derive(Debug, Default)]
struct Outcome {
    hits: usize,
    crossings: Vec<String>,
}

fn play(seed: u64, left_out: Option<Ingredient>, outcome: &mut Outcome) {
    let (budget, options) = (Arc::new(MemoryBudget::default()), CacheOptions::default());
    let secret = KeySecret::derive(b"tests");
    let mut cache = ResponseCache::new(secret, options, None, &budget);
    cache.keys.left_out = left_out;
    let mut rng = Rng::new(seed);
    let (mut request, mut answers) = (Request::default(), Vec::<Said>::new());
    let mut now = Timestamp(1_700_000_000_000);
    for _ in 0..STEPS {
        request.vary(&mut rng);
        if rng.chance(20) {
            now = now.plus(Duration::from_secs(rng.below(30) as u64));
        }
        let headers = request.headers();
        let sent: Vec<_> = headers.iter().collect();
        let caller = CallerKey::new(&sent, request.private_id());
        let first = cache.keys().first(&request.key_parts());
        let found = cache.look_up_in_memory(first, &caller, now).found;
        if let Some(found) = found.filter(|found| found.usability == Use::Fresh) {
            outcome.hits += 1;
            let said = &answers[String::from_utf8_lossy(&found.entry.body)
                .parse::<usize>()
                .unwrap()];
            if let Some(why) = said.crosses(&request, now) {
                outcome
                    .crossings
                    .push(format!("{why}: {said:?} for {request:?}"));
            }
            continue;
        }
        let said = Said::random(&request, now, &mut rng);
        let body = answers.len().to_string();
        let (headers, exchange) = (
            said.headers(),
            Exchange {
                asked_at: now,
                answered_at: now,
            },
        );
        answers.push(said);
        let answer = Answer {
            status: 200,
            headers: &headers,
            bytes: body.len(),
            has_errors: false,
            exchange,
        };
        let Ok(storable) = decide(answer, caller.has_private_id(), &StoringPolicy::default())
        else {
            continue;
        };
        let write = Write {
            first,
            caller: &caller,
            stamp: cache.stamp(),
            storable,
            kind: EntryKind::Response,
            status: 200,
            headers: Box::default(),
            body: body.as_bytes(),
            tags: Box::default(),
            took: Duration::ZERO,
            client: None,
        };
        cache.store(write, now).unwrap();
    }
}

fn play_all(worlds: u64, left_out: Option<Ingredient>) -> Outcome {
    let mut outcome = Outcome::default();
    (0..worlds).for_each(|seed| play(seed, left_out, &mut outcome));
    outcome
}

#[test]
fn in_two_hundred_thousand_operations_no_caller_gets_the_answer_of_another() {
    let outcome = play_all(WORLDS, None);
    let crossings = &outcome.crossings;
    assert!(
        crossings.is_empty(),
        "{} crossings: {}",
        crossings.len(),
        crossings[0]
    );
    assert!(
        outcome.hits > 20_000,
        "{} hits say too little",
        outcome.hits
    );
}

#[test]
fn without_any_part_of_the_key_a_caller_gets_the_answer_of_another() {
    for ingredient in [
        Ingredient::Subgraph,
        Ingredient::Url,
        Ingredient::Schema,
        Ingredient::Extensions,
        Ingredient::Text,
        Ingredient::Variables,
        Ingredient::Representation,
        Ingredient::Headers,
        Ingredient::Credentials,
        Ingredient::PrivateId,
    ] {
        let outcome = play_all(WORLDS / 10, Some(ingredient));
        assert!(
            !outcome.crossings.is_empty(),
            "{ingredient:?} is not needed"
        );
    }
}
