//! One request per missing key.

use std::{net::IpAddr, sync::Arc};

use ogive_base::ShareLimits;
use ogive_cache::{FlightOutcome, FlightRole, Flights, Key, Waiter};

fn key(n: u8) -> Key {
    Key([n; 16])
}

fn waiter(flights: &Arc<Flights>) -> Waiter {
    match flights.begin(key(1), None) {
        FlightRole::Wait(waiter) => waiter,
        turn => panic!("{turn:?}"),
    }
}

#[tokio::test]
async fn others_wait_for_the_first_and_learn_how_it_ended() {
    let flights = Arc::new(Flights::default());
    for is_stored in [true, false] {
        flights.note(&key(1), true);
        let FlightRole::Lead(leader) = flights.begin(key(1), None) else {
            panic!("the first request does not lead")
        };
        let waiters = [waiter(&flights), waiter(&flights)];
        assert!(matches!(flights.begin(key(2), None), FlightRole::Lead(_)));
        leader.land(is_stored);
        assert!(flights.is_empty());
        for waiter in waiters {
            let expected =
                [FlightOutcome::NotStored, FlightOutcome::Stored][usize::from(is_stored)];
            assert_eq!(waiter.outcome().await, expected);
        }
    }
}

#[test]
fn no_request_waits_for_answers_that_are_not_stored() {
    let flights = Arc::new(Flights::default());
    let FlightRole::Lead(leader) = flights.begin(key(1), None) else {
        panic!("the first request does not lead")
    };
    leader.land(false);
    assert!(matches!(flights.begin(key(1), None), FlightRole::Alone));
    flights.note(&key(1), true);
    assert!(matches!(flights.begin(key(1), None), FlightRole::Lead(_)));
}

#[tokio::test]
async fn a_request_that_is_given_up_wakes_those_who_wait() {
    let flights = Arc::new(Flights::default());
    let turn = flights.begin(key(1), None);
    let waiter = waiter(&flights);
    drop(turn);
    assert_eq!(waiter.outcome().await, FlightOutcome::Abandoned);
    assert!(matches!(flights.begin(key(1), None), FlightRole::Lead(_)));
}

#[test]
fn beyond_the_limit_no_request_waits() {
    let flights = Arc::new(Flights::new(ShareLimits { all: 16, each: 16 }));
    let first = flights.begin(key(1), None);
    // 17 has its place where 1 has.
    assert!(matches!(flights.begin(key(17), None), FlightRole::Alone));
    drop(first);
    assert!(matches!(flights.begin(key(17), None), FlightRole::Lead(_)));
}

#[test]
fn a_client_that_leads_its_share_leaves_room_for_others() {
    let flights = Arc::new(Flights::new(ShareLimits { all: 32, each: 16 }));
    let [one, other] = [1, 2].map(|last| Some(IpAddr::from([10, 0, 0, last])));
    let _first = flights.begin(key(1), one);
    assert!(matches!(flights.begin(key(17), one), FlightRole::Alone));
    assert!(matches!(flights.begin(key(17), other), FlightRole::Lead(_)));
    // Waiting costs no share.
    assert!(matches!(flights.begin(key(1), one), FlightRole::Wait(_)));
}

#[test]
fn of_many_threads_one_leads_and_all_others_wait() {
    let flights = Arc::new(Flights::default());
    let barrier = std::sync::Barrier::new(8);
    let turns: Vec<FlightRole> = std::thread::scope(|scope| {
        let begin = || {
            barrier.wait();
            flights.begin(key(1), None)
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(begin)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let led = turns
        .iter()
        .filter(|turn| matches!(turn, FlightRole::Lead(_)));
    let waiting = turns
        .iter()
        .filter(|turn| matches!(turn, FlightRole::Wait(_)));
    assert_eq!((led.count(), waiting.count()), (1, 7));
}
