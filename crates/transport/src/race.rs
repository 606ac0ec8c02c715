//! Several addresses of one host, tried one after the other without waiting for the one before to fail (RFC 8305,
//! "Happy Eyeballs"). The first that answers counts, the others are given up.

use std::{
    future::{Future, poll_fn},
    io::{self, ErrorKind},
    net::SocketAddr,
    pin::Pin,
    task::Poll,
    time::Duration,
};

/// How long an address may say nothing before the next one is tried as well (RFC 8305, section 8), and at least.
pub(crate) const DELAY: (Duration, Duration) =
    (Duration::from_millis(250), Duration::from_millis(10));

/// The same for whoever has so much time altogether: several addresses have their turn in it.
pub(crate) fn delay_within(time: Duration) -> Duration {
    DELAY.0.min(time / 4).max(DELAY.1)
}

/// What came first.
#[derive(Debug)]
pub(crate) struct RaceOutcome<T> {
    pub(crate) connection: T,
    /// The addresses that were tried before and did not answer.
    pub(crate) passed_over: Vec<SocketAddr>,
}

/// Tries addresses with `dial`, the next one after `delay` or as soon as one fails. The error is the last one.
pub(crate) async fn race<T, F>(
    addresses: &[SocketAddr],
    delay: Duration,
    dial: impl Fn(SocketAddr) -> F,
) -> io::Result<RaceOutcome<T>>
where
    F: Future<Output = io::Result<T>>,
{
    let mut left = addresses.iter().copied();
    let mut under_way: Vec<(SocketAddr, Pin<Box<F>>)> = Vec::new();
    let mut failed: Vec<SocketAddr> = Vec::new();
    let mut error: Option<io::Error> = None;
    // The first at once, and whenever one fails the next.
    let mut now = true;
    let mut clock = Box::pin(tokio::time::sleep(delay));
    poll_fn(move |cx| {
        loop {
            let is_due = left.len() > 0 && (now || clock.as_mut().poll(cx).is_ready());
            if is_due && let Some(address) = left.next() {
                under_way.push((address, Box::pin(dial(address))));
                now = false;
                clock = Box::pin(tokio::time::sleep(delay));
            }
            let mut at = 0;
            while let Some((address, attempt)) = under_way.get_mut(at) {
                match attempt.as_mut().poll(cx) {
                    Poll::Pending => at += 1,
                    Poll::Ready(Ok(connection)) => {
                        let winner = *address;
                        let others = under_way.iter().map(|(address, _)| address);
                        let others = others.chain(&failed);
                        // Those that were tried later had less time.
                        let earlier = addresses.iter().take_while(|known| **known != winner);
                        let passed_over =
                            earlier.filter(|known| others.clone().any(|a| a == *known));
                        return Poll::Ready(Ok(RaceOutcome {
                            connection,
                            passed_over: passed_over.copied().collect(),
                        }));
                    }
                    Poll::Ready(Err(why)) => {
                        failed.push(*address);
                        error = Some(why);
                        now = true;
                        under_way.swap_remove(at);
                    }
                }
            }
            if under_way.is_empty() && left.len() == 0 {
                let nobody = || io::Error::new(ErrorKind::AddrNotAvailable, "no address is known");
                return Poll::Ready(Err(error.take().unwrap_or_else(nobody)));
            }
            // The clock of a new attempt has to be looked at, too.
            let goes_on = is_due || (now && left.len() > 0);
            if !goes_on {
                return Poll::Pending;
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    /// What an address does: answers or fails after so many milliseconds, or neither.
    #[derive(Clone, Copy)]
    enum Does {
        Answer(u64),
        Fail(u64),
        Nothing,
    }
    use Does::{Answer, Fail, Nothing};

    /// Who answered after how many milliseconds, which addresses were tried when, and who was passed over.
    async fn raced(all: &[Does]) -> String {
        let address = |at: usize| SocketAddr::from(([10, 0, 0, at as u8], 1));
        let addresses: Vec<SocketAddr> = (0..all.len()).map(address).collect();
        let at = |address: SocketAddr| addresses.iter().position(|a| *a == address).unwrap();
        let began = Instant::now();
        let tried = std::cell::RefCell::new(Vec::new());
        let won = race(&addresses, DELAY.0, |address| {
            let at = at(address);
            let ms = began.elapsed().as_millis();
            tried.borrow_mut().push(format!("{at}@{ms}"));
            let does = all[at];
            async move {
                match does {
                    Answer(ms) => {
                        sleep(Duration::from_millis(ms)).await;
                        Ok(at)
                    }
                    Fail(ms) => {
                        sleep(Duration::from_millis(ms)).await;
                        Err(io::Error::other(format!("refused by {at}")))
                    }
                    Nothing => std::future::pending().await,
                }
            }
        })
        .await;
        let ms = began.elapsed().as_millis();
        let tried = tried.borrow().join(" ");
        match won {
            Ok(won) => {
                let passed: Vec<usize> = won.passed_over.iter().map(|a| at(*a)).collect();
                format!("{} after {ms}; {tried}; not {passed:?}", won.connection)
            }
            Err(why) => format!("{why} after {ms}; {tried}"),
        }
    }

    /// Found by a review: a host with several addresses was down if the first said nothing.
    #[tokio::test(start_paused = true)]
    async fn an_address_that_says_nothing_delays_and_no_more() {
        for (all, expected) in [
            (&[Answer(3), Nothing][..], "0 after 3; 0@0; not []"),
            (&[Nothing, Answer(3)], "1 after 253; 0@0 1@250; not [0]"),
            (
                &[Nothing, Nothing, Answer(3)],
                "2 after 503; 0@0 1@250 2@500; not [0, 1]",
            ),
            // The slow one may still win, and what was tried after it is not to blame.
            (&[Answer(300), Nothing], "0 after 300; 0@0 1@250; not []"),
            // Who fails does not keep the next one waiting.
            (&[Fail(1), Answer(2)], "1 after 3; 0@0 1@1; not [0]"),
            (
                &[Nothing, Fail(0), Answer(1)],
                "2 after 251; 0@0 1@250 2@250; not [0, 1]",
            ),
            (&[Fail(1), Fail(2)], "refused by 1 after 3; 0@0 1@1"),
            (&[], "no address is known after 0; "),
        ] {
            assert_eq!(raced(all).await, expected);
        }
    }

    #[test]
    fn several_addresses_have_their_turn_in_a_short_time() {
        let ms = Duration::from_millis;
        assert_eq!(delay_within(ms(5_000)), ms(250));
        assert_eq!(delay_within(ms(200)), ms(50));
        assert_eq!(delay_within(ms(1)), ms(10));
    }
}
