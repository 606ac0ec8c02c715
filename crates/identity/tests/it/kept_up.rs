//! Key sets that change, do not come, or come wrong.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ogive_identity::{
    Authenticator, AuthenticatorOptions, KeyOrigin, KeySetOptions, KeySource, KeySourceOptions,
    TokenError,
    authenticator::SignatureCheck,
    key_origin::check_way,
    key_source::{Refetch, now},
};
use ogive_testbase::subgraph::{Reply, StubSubgraph};
use serde_json::json;

use crate::made::{Folder, Made, Server, claims, jwks, ok};

async fn judge_at(authenticator: &Authenticator, token: &str, now: u64) -> Result<(), TokenError> {
    let check = async |check: SignatureCheck| check();
    authenticator.judge(token, now, &check).await.map(|_| ())
}

async fn judge(authenticator: &Authenticator, token: &str) -> Result<(), TokenError> {
    judge_at(authenticator, token, now()).await
}

fn start(set: KeySetOptions) -> Authenticator {
    let options = AuthenticatorOptions {
        sets: vec![set],
        ..AuthenticatorOptions::default()
    };
    Authenticator::start(options, None)
}

/// A set that is not fetched unless a token wants it, however long the test takes.
fn at(url: String) -> KeySetOptions {
    let mut set = KeySetOptions::new(KeyOrigin::Url(url));
    set.source.poll_interval = Some(Duration::from_secs(3_600));
    set.source.refetch_interval = Duration::from_secs(3_600);
    set.source.timeout = PATIENCE;
    set
}

/// How long a server of a test may wait for its turn.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_new_key_is_fetched_once_for_all_who_wait_and_the_old_one_stays_for_a_while() {
    let (old, new) = (Made::new("old"), Made::new("new"));
    let is_open = Arc::new(AtomicBool::new(true));
    let (opened, sets) = (Arc::clone(&is_open), [jwks(&[&old]), jwks(&[&new])]);
    let server = StubSubgraph::start(move |nth, _| {
        while !opened.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        Reply::Last(ok(&sets[nth.min(1)], "").into_bytes())
    });
    let mut set = at(server.url());
    set.source.grace = Duration::from_secs(300);
    let authenticator = start(set);
    assert_eq!(
        judge(&authenticator, &old.token(&claims("i"))).await,
        Ok(())
    );
    // The new set does not come before all who want it wait.
    is_open.store(false, Ordering::Release);
    let token = new.token(&claims("i"));
    let all = (0..=50).map(|at| {
        let (authenticator, token, is_open) = (&authenticator, &token, &is_open);
        async move {
            if at == 50 {
                is_open.store(true, Ordering::Release);
                return Ok(());
            }
            judge(authenticator, token).await
        }
    });
    for judged in futures(all).await {
        assert_eq!(judged, Ok(()));
    }
    assert_eq!(server.asked(), 2, "one for the start, one for the new key");
    assert_eq!(
        judge(&authenticator, &old.token(&claims("i"))).await,
        Ok(())
    );
    let mut late = claims("i");
    late["exp"] = json!(now() + 10_000);
    let (late, later) = (old.token(&late), now() + 302);
    let digest = authenticator.recall(&late, now()).unwrap_err();
    let check = async |check: SignatureCheck| check();
    authenticator
        .prove(&late, digest, now(), check)
        .await
        .unwrap();
    assert!(authenticator.recall(&late, now()).is_ok());
    assert!(
        authenticator.recall(&late, later).is_err(),
        "what a key proved that is gone"
    );
    assert_eq!(
        judge_at(&authenticator, &late, later).await,
        Err(TokenError::UnknownKey)
    );
    // Whatever names tokens have, nothing is fetched a third time for a while: the set that came last refuses them.
    for i in 0..20 {
        let token = Made::new(&format!("{i}")).token(&claims("i"));
        assert_eq!(
            judge(&authenticator, &token).await,
            Err(TokenError::UnknownKey)
        );
    }
    assert_eq!(server.asked(), 3);
}

#[tokio::test]
async fn a_forged_token_does_not_use_up_the_fetch_that_a_new_key_needs() {
    let (old, new) = (Made::new("old"), Made::new("new"));
    let server = Server::json(&jwks(&[&old]));
    let authenticator = start(at(server.url()));
    let forged = Made::new("forged").token(&claims("i"));
    assert_eq!(
        judge(&authenticator, &old.token(&claims("i"))).await,
        Ok(())
    );
    assert_eq!(
        judge(&authenticator, &forged).await,
        Err(TokenError::UnknownKey)
    );
    server.answer(Some(ok(&jwks(&[&old, &new]), "")));
    assert_eq!(
        judge(&authenticator, &new.token(&claims("i"))).await,
        Ok(())
    );
    // The set came a moment ago and does not have the key, with the name of a key or without.
    assert_eq!(
        judge(&authenticator, &forged).await,
        Err(TokenError::UnknownKey)
    );
    let nameless = Made::new("forged").signed(r#"{"alg":"EdDSA"}"#, &claims("i").to_string());
    assert_eq!(
        judge(&authenticator, &nameless).await,
        Err(TokenError::Signature)
    );
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn an_empty_set_takes_all_keys_back() {
    for grace in [0, 300] {
        let key = Made::new("a");
        let server = Server::json(&jwks(&[&key]));
        let folder = Folder::new();
        let mut set = at(server.url());
        set.source.kept = Some(folder.path().into());
        set.source.grace = Duration::from_secs(grace);
        let authenticator = start(set.clone());
        let token = key.token(&claims("i"));
        assert_eq!(judge(&authenticator, &token).await, Ok(()));
        server.answer(Some(ok("{\"keys\":[]}", "")));
        assert_eq!(authenticator.sources()[0].refetch().await, Refetch::Fresh);
        let expected = match grace {
            0 => Err(TokenError::UnknownKey),
            _ => Ok(()),
        };
        assert_eq!(judge(&authenticator, &token).await, expected);
        let later = judge_at(&authenticator, &token, now() + grace + 1).await;
        assert!(later.is_err(), "{later:?}");
        // It holds after a start at which nobody answers, too.
        server.answer(None);
        let again = judge(&start(set), &token).await;
        assert_eq!(again, Err(TokenError::Unanswered));
    }
}

#[tokio::test]
async fn another_key_of_the_same_name_is_kept_for_the_next_start() {
    let (old, new) = (Made::new("a"), Made::new("a"));
    let server = Server::json(&jwks(&[&old]));
    let folder = Folder::new();
    let mut set = at(server.url());
    set.source.kept = Some(folder.path().into());
    set.source.grace = Duration::ZERO;
    let authenticator = start(set.clone());
    assert_eq!(
        judge(&authenticator, &old.token(&claims("i"))).await,
        Ok(())
    );
    server.answer(Some(ok(&jwks(&[&new]), "")));
    assert_eq!(authenticator.sources()[0].refetch().await, Refetch::Fresh);
    server.answer(None);
    let again = start(set);
    let (old, new) = (old.token(&claims("i")), new.token(&claims("i")));
    assert_eq!(judge(&again, &new).await, Ok(()));
    assert_eq!(judge(&again, &old).await, Err(TokenError::Signature));
}

#[tokio::test]
async fn what_is_on_disk_is_written_again_only_if_it_is_other() {
    use std::os::unix::fs::MetadataExt;
    let (a, b) = (Made::new("a"), Made::new("b"));
    let server = Server::json(&jwks(&[&a, &b]));
    let folder = Folder::new();
    let mut set = at(server.url());
    set.source.kept = Some(folder.path().into());
    set.source.refetch_interval = Duration::ZERO;
    let source = KeySource::start(set.source);
    assert!(source.tried().await);
    let written = || {
        let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap();
        file.unwrap().metadata().unwrap().ino()
    };
    server.answer(Some(ok(&jwks(&[&a]), "")));
    assert_eq!(source.refetch().await, Refetch::Fresh);
    let first = written();
    // Another file takes the place of the number, if one is written.
    let _other = folder.write("other", "");
    std::fs::remove_file(folder.path().join("other")).unwrap();
    assert_eq!(source.refetch().await, Refetch::Fresh);
    assert_eq!(written(), first, "while `b` is in its grace");
}

#[tokio::test]
async fn two_sets_of_one_issuer_each_have_their_audiences() {
    let key = Made::new("a");
    let server = Server::json(&jwks(&[&key]));
    let sets = ["one", "two"].map(|audience| {
        let mut set = at(server.url());
        set.issuers = vec!["i".into()];
        set.audiences = vec![audience.into()];
        set
    });
    let options = AuthenticatorOptions {
        sets: sets.into(),
        ..AuthenticatorOptions::default()
    };
    let authenticator = Authenticator::start(options, None);
    for (audience, expected) in [
        ("one", Ok(())),
        ("two", Ok(())),
        ("three", Err(TokenError::Audience)),
    ] {
        let mut claims = claims("i");
        claims["aud"] = json!(audience);
        let judged = judge(&authenticator, &key.token(&claims)).await;
        assert_eq!(judged, expected, "{audience}");
    }
}

/// All of them at a time.
async fn futures<F: Future>(all: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut all: Vec<_> = all.map(|one| (Box::pin(one), None)).collect();
    std::future::poll_fn(move |cx| {
        let mut waits = false;
        for (future, output) in &mut all {
            if output.is_none() {
                match future.as_mut().poll(cx) {
                    std::task::Poll::Ready(done) => *output = Some(done),
                    std::task::Poll::Pending => waits = true,
                }
            }
        }
        if waits {
            std::task::Poll::Pending
        } else {
            std::task::Poll::Ready(all.drain(..).filter_map(|(_, output)| output).collect())
        }
    })
    .await
}

#[tokio::test]
async fn a_token_without_the_name_of_a_key_finds_a_new_one_too() {
    let (old, new) = (Made::new("old"), Made::new("new"));
    let server = Server::json(&jwks(&[&old]));
    let authenticator = start(at(server.url()));
    assert_eq!(
        judge(&authenticator, &old.token(&claims("i"))).await,
        Ok(())
    );
    server.answer(Some(ok(&jwks(&[&old, &new]), "")));
    let token = new.signed(r#"{"alg":"EdDSA"}"#, &claims("i").to_string());
    assert_eq!(judge(&authenticator, &token).await, Ok(()));
}

#[tokio::test]
async fn whatever_becomes_of_the_server_the_keys_that_are_there_stay() {
    let key = Made::new("a");
    let good = jwks(&[&key]);
    let folder = Folder::new();
    let faults = [
        ("closes", None),
        ("answers HTML", Some(ok("<html>sign in</html>", ""))),
        ("answers with a list", Some(ok("[]", ""))),
        (
            "answers 500",
            Some("HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n".to_owned()),
        ),
        (
            "sends elsewhere",
            Some(
                "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
                    .to_owned(),
            ),
        ),
        (
            "is huge",
            Some(ok(&format!("{{\"keys\":[{}]}}", "1,".repeat(1 << 20)), "")),
        ),
        (
            "announces more than it may",
            Some("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n{".to_owned()),
        ),
        (
            "stops in the middle",
            Some("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"keys\":[".to_owned()),
        ),
        ("speaks no HTTP", Some("hello\r\n\r\n".to_owned())),
        (
            "answers a member twice",
            Some(ok("{\"keys\":[],\"keys\":[]}", "")),
        ),
    ];
    for (fault, answer) in faults {
        let server = Server::json(&good);
        let mut set = at(server.url());
        set.source.kept = Some(folder.path().into());
        set.source.refetch_interval = Duration::ZERO;
        let authenticator = start(set.clone());
        let token = key.token(&claims("i"));
        assert_eq!(judge(&authenticator, &token).await, Ok(()), "{fault}");
        server.answer(answer);
        let unknown = Made::new("b").token(&claims("i"));
        let refused = judge(&authenticator, &unknown).await;
        assert_eq!(refused, Err(TokenError::Unanswered), "{fault}");
        let source = &authenticator.sources()[0];
        assert!(
            source.failures() > 0 && source.failure().is_some(),
            "{fault}"
        );
        assert_eq!(judge(&authenticator, &token).await, Ok(()), "{fault}");
        // Five minutes later, too, and for a token that nobody has seen before.
        let mut late = claims("i");
        late["iat"] = (now() + 240).into();
        late["exp"] = (now() + 3_600).into();
        let late = key.token(&late);
        let judged = judge_at(&authenticator, &late, now() + 300).await;
        assert_eq!(judged, Ok(()), "{fault}");
        // Neither does a new start need the server.
        let again = start(set);
        assert_eq!(judge(&again, &token).await, Ok(()), "{fault}");
        // Without anything on disk there are no keys, which is no fault of the token.
        let mut set = at(server.url());
        set.source.refetch_interval = Duration::ZERO;
        let nothing = start(set);
        assert_eq!(
            judge(&nothing, &token).await,
            Err(TokenError::NoKeys),
            "{fault}"
        );
        // It comes back, and the next token has the keys fetched.
        server.answer(Some(ok(&good, "")));
        assert_eq!(judge(&nothing, &token).await, Ok(()), "{fault}");
    }
}

#[tokio::test]
async fn keys_that_are_not_fetched_for_too_long_prove_nothing_until_they_are() {
    let made = Made::new("k");
    let server = Server::json(&jwks(&[&made]));
    let mut set = at(server.url());
    set.source.poll_interval = Some(Duration::from_millis(5));
    set.source.max_stale = Some(Duration::from_millis(20));
    set.source.refetch_interval = Duration::ZERO;
    let authenticator = start(set);
    let token = made.token(&claims("i"));
    let digest = ogive_identity::digest::digest_of(token.as_bytes());
    let check = async |check: SignatureCheck| check();
    let proved = authenticator.prove(&token, digest, now(), check).await;
    assert!(proved.is_ok());
    assert!(authenticator.recall(&token, now()).is_ok());
    server.answer(None);
    // It is remembered no longer than its key is good.
    while authenticator.recall(&token, now()).is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        judge(&authenticator, &token).await,
        Err(TokenError::Unanswered)
    );
    server.answer(Some(ok(&jwks(&[&made]), "")));
    while judge(&authenticator, &token).await.is_err() {
        tokio::task::yield_now().await;
    }
}

/// A process that begins while its issuer is away counts from when another one was told last that the keys are good.
#[tokio::test]
async fn max_stale_counts_from_what_was_confirmed_last_also_after_a_restart() {
    let (made, folder) = (Made::new("k"), Folder::new());
    let server = Server::json(&jwks(&[&made]));
    let mut set = at(server.url());
    set.source.poll_interval = Some(Duration::from_millis(5));
    set.source.max_stale = Some(Duration::from_secs(1_800));
    set.source.kept = Some(folder.path().to_path_buf());
    let file = set.source.kept_file().unwrap();
    let token = made.token(&claims("i"));
    let first = start(set.clone());
    assert_eq!(judge(&first, &token).await, Ok(()));
    // The keys are good before they are on disk.
    while !file.exists() {
        tokio::task::yield_now().await;
    }
    let noted = |ago: u64| {
        let at = std::time::SystemTime::now() - Duration::from_secs(ago);
        let kept = std::fs::File::options().append(true).open(&file).unwrap();
        kept.set_modified(at).unwrap();
    };
    let age = || file.metadata().unwrap().modified().unwrap().elapsed();
    // Each fetch that succeeds confirms it.
    noted(3_600);
    while age().unwrap_or_default() > Duration::from_secs(1_800) {
        tokio::task::yield_now().await;
    }
    server.answer(None);
    while first.sources().iter().all(|source| source.failures() == 0) {
        tokio::task::yield_now().await;
    }
    drop(first);
    noted(30);
    assert_eq!(judge(&start(set.clone()), &token).await, Ok(()));
    noted(1_801);
    assert!(judge(&start(set), &token).await.is_err());
}

#[tokio::test]
async fn an_issuer_says_where_its_keys_are_and_speaks_for_itself_only() {
    let key = Made::new("a");
    let keys = Server::json(&jwks(&[&key]));
    let about = Server::json("{}");
    let issuer = format!("http://{}", about.address);
    let tell = |issuer: &str, url: &str| {
        about.answer(Some(ok(
            &json!({ "issuer": issuer, "jwks_uri": url }).to_string(),
            "",
        )));
    };
    let begin = || {
        let mut set = KeySetOptions::new(KeyOrigin::Discovery(issuer.clone()));
        set.source.poll_interval = Some(Duration::from_secs(3_600));
        set.source.timeout = PATIENCE;
        start(set)
    };
    tell(&issuer, &keys.url());
    let authenticator = begin();
    assert_eq!(
        judge(&authenticator, &key.token(&claims(&issuer))).await,
        Ok(())
    );
    let asked = about.requests()[0].lines().next().map(str::to_owned);
    assert_eq!(
        asked.as_deref(),
        Some("GET /.well-known/openid-configuration HTTP/1.1")
    );
    // Its set is for its tokens.
    let other = judge(&authenticator, &key.token(&claims("https://other"))).await;
    assert_eq!(other, Err(TokenError::UnknownIssuer));
    for (about, url) in [
        ("https://other", keys.url()),
        (&format!("{issuer}/"), keys.url()),
        (&issuer, "http://keys.example/jwks".to_owned()),
        (&issuer, "file:///etc/passwd".to_owned()),
    ] {
        tell(about, &url);
        let authenticator = begin();
        let refused = judge(&authenticator, &key.token(&claims(&issuer))).await;
        assert_eq!(refused, Err(TokenError::NoKeys), "{about} {url}");
    }
    assert_eq!(keys.requests().len(), 1);
}

#[tokio::test]
async fn headers_for_an_issuer_are_sent_to_its_origin_only() {
    let key = Made::new("a");
    let keys = Server::new(&ok(&jwks(&[&key]), "etag: \"1\"\r\n"));
    let about = Server::json("{}");
    let issuer = format!("http://{}", about.address);
    let tell = |url: &str| {
        let document = json!({ "issuer": issuer, "jwks_uri": url });
        about.answer(Some(ok(&document.to_string(), "")));
    };
    let begin = || {
        let mut set = KeySetOptions::new(KeyOrigin::Discovery(issuer.clone()));
        let secret = http::HeaderValue::from_static("secret");
        set.source.headers.insert("x-key", secret);
        set.source.timeout = PATIENCE;
        KeySource::start(set.source)
    };
    tell(&keys.url());
    assert!(begin().tried().await);
    let has_secret = |request: &String| request.contains("x-key: secret");
    assert_eq!(
        about.requests().iter().map(has_secret).collect::<Vec<_>>(),
        [true]
    );
    assert!(!keys.requests().iter().any(has_secret));
    // Of its own it is asked with them. What it answers there is no set, which does not matter.
    tell(&about.url());
    let source = begin();
    source.tried().await;
    let requests = about.requests();
    // What failed is tried again after a second, which may be over.
    assert!(requests.len() >= 3, "{requests:?}");
    assert!(requests.iter().all(has_secret), "{requests:?}");
}

#[tokio::test]
async fn a_file_is_watched_and_a_bad_one_changes_nothing() {
    let folder = Folder::new();
    let (old, new) = (Made::new("old"), Made::new("new"));
    let path = folder.write("keys.json", &jwks(&[&old]));
    let authenticator = start(KeySetOptions::new(KeyOrigin::File(path)));
    assert_eq!(
        judge(&authenticator, &old.token(&claims("i"))).await,
        Ok(())
    );
    folder.write("keys.json", "{");
    assert_eq!(
        judge(&authenticator, &new.token(&claims("i"))).await,
        Err(TokenError::Unanswered)
    );
    assert_eq!(
        judge(&authenticator, &old.token(&claims("i"))).await,
        Ok(())
    );
    folder.write("keys.json", &jwks(&[&new]));
    let token = new.token(&claims("i"));
    while judge(&authenticator, &token).await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_an_answer_says_of_caches_and_validators_is_kept_to() {
    let key = Made::new("a");
    let server = Server::new(&ok(&jwks(&[&key]), "etag: \"1\"\r\n"));
    let mut options = KeySourceOptions::new(KeyOrigin::Url(server.url()));
    options.refetch_interval = Duration::ZERO;
    options.timeout = PATIENCE;
    options
        .headers
        .insert("x-key", http::HeaderValue::from_static("k"));
    let source = KeySource::start(options);
    assert!(source.tried().await);
    server.answer(Some(
        "HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\n\r\n".to_owned(),
    ));
    assert_eq!(source.refetch().await, Refetch::Fresh);
    let requests = server.requests();
    assert!(!requests[0].contains("if-none-match") && requests[0].contains("x-key: k"));
    assert!(
        requests[1].contains("if-none-match: \"1\""),
        "{}",
        requests[1]
    );
    assert_eq!((source.fetches(), source.failures()), (1, 0));
}

#[tokio::test]
async fn key_sets_that_stay_the_same_go_on_when_the_configuration_changes() {
    let key = Made::new("a");
    let server = Server::json(&jwks(&[&key]));
    let before = start(at(server.url()));
    assert_eq!(judge(&before, &key.token(&claims("i"))).await, Ok(()));
    let mut options = before.options().clone();
    options.sets[0].audiences = vec!["us".into()];
    let after = Authenticator::start(options, Some(&before));
    drop(before);
    assert_eq!(
        judge(&after, &key.token(&claims("i"))).await,
        Err(TokenError::Audience)
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn plain_http_is_for_this_machine() {
    for url in [
        "https://a/",
        "http://127.0.0.1:1/",
        "http://[::1]/",
        "http://localhost/x",
    ] {
        assert_eq!(check_way(url, false), Ok(()), "{url}");
    }
    for url in [
        "http://a/",
        "http://127.0.0.1.example/",
        "http://localhost@evil/",
        "http://10.0.0.1/",
        "ftp://127.0.0.1/",
        "file:///a",
    ] {
        assert!(check_way(url, false).is_err(), "{url}");
    }
    assert_eq!(check_way("http://a/", true), Ok(()));
}
