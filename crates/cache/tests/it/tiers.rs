//! Two tiers and several processes.

use std::{net::IpAddr, sync::Arc, time::Duration};

use http::HeaderMap;
use ogive_base::MemoryBudget;
use ogive_cache::{
    CacheOptions, CallerKey, ClockStamp, Invalidation, Key, KeySecret, LostPolicy, MemoryLimits,
    Remote, RemoteLimits, RemoteTier, ResponseCache, Tag, Timestamp,
};
use ogive_testbase::Rng;
use tokio::time::Instant;

use crate::{
    made::{Answered, NOW, anyone, body, first, headers, sent, store},
    remote_double::{Service, State},
};

fn process(service: &Arc<Service>, on_lost: LostPolicy) -> ResponseCache {
    let options = CacheOptions {
        on_lost,
        ..CacheOptions::default()
    };
    process_with(service, options)
}

fn process_with(service: &Arc<Service>, options: CacheOptions) -> ResponseCache {
    let tier: Arc<dyn RemoteTier> = Arc::clone(service) as _;
    let remote = Remote::new(tier, RemoteLimits::default());
    let budget = Arc::new(MemoryBudget::default());
    ResponseCache::new(KeySecret::derive(b"tests"), options, Some(remote), &budget)
}

fn public() -> HeaderMap {
    headers(&[("cache-control", "max-age=3600, public")])
}

async fn find(cache: &ResponseCache, key: Key, now: Timestamp) -> Option<String> {
    let lookups = cache.look_up(&[key], &anyone(), None, now).await;
    body(&lookups[0]).map(str::to_owned)
}

fn put(cache: &ResponseCache, key: Key, stamp: ClockStamp, text: &str, tags: &[Tag]) {
    let answered = Answered {
        stamp,
        body: text,
        tags,
    };
    let _ = store(cache, key, &anyone(), answered, &public(), NOW);
}

#[tokio::test(start_paused = true)]
async fn what_one_process_stores_others_find_and_then_have_themselves() {
    let service = Service::new();
    let [one, other] = [(); 2].map(|()| process(&service, LostPolicy::Serve));
    one.follow_clock(NOW).await.unwrap();
    let key = first(&one, "a");
    put(&one, key, one.stamp(), "1", &[]);
    assert_eq!(find(&other, key, NOW).await, None, "it is not written yet");
    one.flush().await;
    assert_eq!(find(&other, key, NOW).await.as_deref(), Some("1"));
    let asked = service.state().fetches;
    assert_eq!(find(&other, key, NOW).await.as_deref(), Some("1"));
    assert_eq!(
        service.state().fetches,
        asked,
        "memory answers without asking"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_client_finds_remotely_counts_in_its_share_of_memory() {
    let service = Service::new();
    let one = process(&service, LostPolicy::Serve);
    one.follow_clock(NOW).await.unwrap();
    let key = first(&one, "a");
    put(&one, key, one.stamp(), "1", &[]);
    one.flush().await;
    // A share of 100 bytes, less than any entry.
    let memory = MemoryLimits {
        client_percent: 0,
        ..MemoryLimits::default()
    };
    let options = CacheOptions {
        memory,
        ..CacheOptions::default()
    };
    let other = process_with(&service, options);
    let client = Some(IpAddr::from([10, 0, 0, 1]));
    for (client, is_kept) in [(client, false), (None, true)] {
        let lookups = other.look_up(&[key], &anyone(), client, NOW).await;
        assert_eq!(body(&lookups[0]), Some("1"));
        let in_memory = other.look_up_in_memory(key, &anyone(), NOW);
        assert_eq!(in_memory.found.is_some(), is_kept);
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_not_known_costs_a_second_round_once() {
    let service = Service::new();
    let [one, other] = [(); 2].map(|()| process(&service, LostPolicy::Serve));
    one.follow_clock(NOW).await.unwrap();
    let key = first(&one, "a");
    let (stored, asked) = (
        headers(&[("x-a", "1"), ("x-b", "1")]),
        headers(&[("x-a", "1"), ("x-b", "2")]),
    );
    let said = headers(&[("cache-control", "max-age=60, public"), ("vary", "x-a")]);
    let sent_one = sent(&stored);
    let caller = CallerKey::new(&sent_one, None);
    let answered = Answered {
        stamp: one.stamp(),
        body: "1",
        tags: &[],
    };
    store(&one, key, &caller, answered, &said, NOW).unwrap();
    one.flush().await;
    let sent_other = sent(&asked);
    let caller = CallerKey::new(&sent_other, None);
    other.follow_clock(NOW).await.unwrap();
    let before = service.state().fetches;
    let lookups = other.look_up(&[key], &caller, None, NOW).await;
    assert_eq!(body(&lookups[0]), Some("1"));
    assert_eq!(service.state().fetches - before, 2);
    other.memory().remove(&lookups[0].second);
    assert_eq!(
        body(&other.look_up(&[key], &caller, None, NOW).await[0]),
        Some("1")
    );
    assert_eq!(
        service.state().fetches - before,
        3,
        "the record is known now"
    );
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_one_round_for_what_memory_lacks() {
    let service = Service::new();
    let one = process(&service, LostPolicy::Serve);
    one.follow_clock(NOW).await.unwrap();
    let keys: Vec<Key> = (0..100).map(|at| first(&one, &at.to_string())).collect();
    for key in &keys[1..] {
        put(&one, *key, one.stamp(), "1", &[]);
    }
    let State {
        fetches,
        keys: asked,
        ..
    } = service.state().clone();
    let lookups = one.look_up(&keys, &anyone(), None, NOW).await;
    assert_eq!(lookups.iter().filter(|l| l.found.is_some()).count(), 99);
    assert_eq!(service.state().fetches - fetches, 1);
    assert_eq!(service.state().keys - asked, 2, "one entry and its record");
}

#[tokio::test(start_paused = true)]
async fn an_invalidation_reaches_other_processes_by_message_or_by_the_clock() {
    let service = Service::new();
    let [one, other] = [(); 2].map(|()| process(&service, LostPolicy::Serve));
    let (key, missing) = (first(&one, "a"), first(&one, "b"));
    for cache in [&one, &other] {
        cache.follow_clock(NOW).await.unwrap();
        put(cache, key, cache.stamp(), "1", &[Tag(1)]);
    }
    one.flush().await;
    // By message.
    let position = one.invalidate(&[Tag(1)], 7, NOW).await.unwrap();
    assert_eq!(find(&one, key, NOW).await, None);
    let tags = vec![Tag(1)];
    other.notice(&Invalidation { position, tags }, NOW);
    assert_eq!(
        find(&other, key, NOW).await,
        None,
        "the remote entry is old, too"
    );
    // The message is lost; any round tells.
    for cache in [&one, &other] {
        put(cache, key, cache.stamp(), "2", &[Tag(1)]);
    }
    one.invalidate(&[Tag(1)], 8, NOW).await.unwrap();
    assert_eq!(
        find(&other, key, NOW).await.as_deref(),
        Some("2"),
        "the message was lost"
    );
    assert_eq!(find(&other, missing, NOW).await, None);
    assert_eq!(find(&other, key, NOW).await, None);
    // Or a background task follows the clock.
    put(&other, key, other.stamp(), "3", &[Tag(1)]);
    one.invalidate(&[Tag(1)], 9, NOW).await.unwrap();
    other.follow_clock(NOW).await.unwrap();
    assert_eq!(find(&other, key, NOW).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_slow_remote_tier_costs_the_time_limit_until_its_breaker_opens() {
    let service = Service::new();
    let one = process(&service, LostPolicy::Serve);
    one.follow_clock(NOW).await.unwrap();
    let key = first(&one, "a");
    service.state().delay = Duration::from_secs(1);
    let began = Instant::now();
    for _ in 0..100 {
        assert_eq!(find(&one, key, NOW).await, None);
    }
    let waited = began.elapsed();
    let limit = RemoteLimits::default().fetch;
    assert!(
        waited <= limit * 3 + Duration::from_millis(10),
        "{waited:?}"
    );
    // Other uses have breakers of their own.
    service.state().delay = Duration::from_millis(100);
    one.invalidate(&[Tag(1)], 1, NOW).await.unwrap();
    // One caller tries again.
    service.state().delay = Duration::ZERO;
    tokio::time::advance(Duration::from_secs(1)).await;
    let before = service.state().fetches;
    find(&one, key, NOW).await;
    assert_eq!(service.state().fetches - before, 1);
}

#[tokio::test(start_paused = true)]
async fn what_happens_without_the_remote_tier_is_a_choice() {
    for (on_lost, expected) in [(LostPolicy::Serve, Some("1")), (LostPolicy::Bypass, None)] {
        let service = Service::new();
        let one = process(&service, on_lost);
        one.follow_clock(NOW).await.unwrap();
        let key = first(&one, "a");
        put(&one, key, one.stamp(), "1", &[Tag(1)]);
        service.state().is_failing = true;
        assert!(one.invalidate(&[Tag(1)], 1, NOW).await.is_err());
        let later = NOW.plus(Duration::from_secs(5));
        assert_eq!(
            find(&one, key, later).await.as_deref(),
            expected,
            "{on_lost:?}"
        );
        service.state().is_failing = false;
        tokio::time::advance(Duration::from_secs(1)).await;
        one.follow_clock(later).await.unwrap();
        assert_eq!(find(&one, key, later).await.as_deref(), Some("1"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_behind_uses_nothing_before_it_knows_what_it_missed() {
    let service = Service::new();
    let [one, other] = [(); 2].map(|()| process(&service, LostPolicy::Bypass));
    let key = first(&one, "a");
    other.follow_clock(NOW).await.unwrap();
    put(&other, key, other.stamp(), "1", &[Tag(1)]);
    one.invalidate(&[Tag(1)], 1, NOW).await.unwrap();
    let position = one.invalidate(&[Tag(2)], 2, NOW).await.unwrap();
    let tags = vec![Tag(2)];
    other.notice(&Invalidation { position, tags }, NOW);
    let in_memory = other.look_up_in_memory(key, &anyone(), NOW);
    assert!(in_memory.found.is_none());
    assert_eq!(find(&other, key, NOW).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_lost_or_goes_back_makes_everything_invalid_once() {
    let service = Service::new();
    let [one, other] = [(); 2].map(|()| process(&service, LostPolicy::Serve));
    let (key, missing) = (first(&one, "a"), first(&one, "b"));
    let fill = async |nonce| {
        for cache in [&one, &other] {
            cache.follow_clock(NOW).await.unwrap();
        }
        let older: State = service.state().clone();
        one.invalidate(&[Tag(1)], nonce, NOW).await.unwrap();
        for cache in [&one, &other] {
            cache.follow_clock(NOW).await.unwrap();
            put(cache, key, cache.stamp(), "1", &[Tag(2)]);
            assert_eq!(find(cache, key, NOW).await.as_deref(), Some("1"));
        }
        older
    };
    fill(1).await;
    service.flush();
    for cache in [&one, &other] {
        find(cache, missing, NOW).await;
        assert_eq!(find(cache, key, NOW).await, None);
    }
    // Back to before the invalidation, and on from there with other ones.
    let older = fill(2).await;
    service.fail_over(older.clone());
    for cache in [&one, &other] {
        find(cache, missing, NOW).await;
        assert_eq!(find(cache, key, NOW).await, None);
    }
    let older = fill(3).await;
    service.fail_over(older);
    let newcomer = process(&service, LostPolicy::Serve);
    newcomer.follow_clock(NOW).await.unwrap();
    for nonce in [11, 12] {
        newcomer.invalidate(&[Tag(2)], nonce, NOW).await.unwrap();
    }
    for cache in [&one, &other] {
        find(cache, missing, NOW).await;
        assert_eq!(
            find(cache, key, NOW).await,
            None,
            "as many numbers, another history"
        );
    }
}

/// Several processes, one service, lost messages, flushes: after a process has asked the service, it finds nothing from
/// before an invalidation.
#[tokio::test(start_paused = true)]
async fn ten_thousand_steps_of_three_processes_bring_nothing_back() {
    const THINGS: usize = 3;
    let (mut hits, mut rng) = (0, Rng::new(1));
    for round in 0..100 {
        let service = Service::new();
        let caches = [(); 3].map(|()| process(&service, LostPolicy::Bypass));
        let (mut versions, mut in_flight) = ([0u64; THINGS], Vec::new());
        for step in 0..100 {
            let (cache, thing) = (&caches[rng.below(3)], rng.below(THINGS));
            let key = first(cache, &thing.to_string());
            match rng.below(100) {
                0..25 => in_flight.push((rng.below(3), thing, cache.stamp(), versions[thing])),
                25..50 if !in_flight.is_empty() => {
                    let (_, thing, stamp, version) =
                        in_flight.swap_remove(rng.below(in_flight.len()));
                    let key = first(cache, &thing.to_string());
                    put(
                        cache,
                        key,
                        stamp,
                        &version.to_string(),
                        &[Tag(thing as u64)],
                    );
                    cache.flush().await;
                }
                50..60 => {
                    versions[thing] += 1;
                    let tags = vec![Tag(thing as u64)];
                    let nonce = round * 1_000 + step + 1;
                    let position = cache.invalidate(&tags, nonce, NOW).await.unwrap();
                    // Some hear of it.
                    let message = Invalidation { position, tags };
                    caches
                        .iter()
                        .filter(|_| rng.chance(50))
                        .for_each(|cache| cache.notice(&message, NOW));
                }
                60..61 => service.flush(),
                _ => {
                    cache.follow_clock(NOW).await.unwrap();
                    if let Some(found) = find(cache, key, NOW).await {
                        hits += 1;
                        assert_eq!(found.parse(), Ok(versions[thing]));
                    }
                }
            }
        }
    }
    assert!(hits > 500, "{hits} hits say too little");
}
