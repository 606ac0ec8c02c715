//! Progress for people: what runs now and when all of it will be done.
//!
//! The estimate adds up what remains to be run, which is known, and corrects it by what has been run: little by the first
//! pieces, which may be unlike the others, and wholly in the end.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Shows progress on a terminal, or says one line per run elsewhere.
pub struct Progress {
    bar: ProgressBar,
    say: Box<dyn Fn(&str)>,
    remaining: Duration,
    /// As if so much had been done, and had taken as long as expected.
    believed: Duration,
    current: Option<(Instant, Duration)>,
    /// What was expected of work done so far, and what it took.
    done: (Duration, Duration),
}

/// Work as expected that counts beside what was done, at most this and a tenth of all: the first piece alone says little.
const BELIEVED: Duration = Duration::from_secs(60);

impl Progress {
    /// Expects work of this length; `say` writes lines where there is no terminal.
    pub fn new(total: Duration, say: Box<dyn Fn(&str)>) -> Progress {
        let bar = ProgressBar::new(total.as_secs().max(1));
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Progress {
            bar,
            say,
            remaining: total,
            believed: BELIEVED.min(total / 10),
            current: None,
            done: Default::default(),
        }
    }

    /// Shows nothing.
    pub fn hidden() -> Progress {
        let mut progress = Progress::new(Duration::ZERO, Box::new(|_| {}));
        progress.bar = ProgressBar::hidden();
        progress
    }

    /// A piece of work begins.
    pub fn begin(&mut self, what: &str, expected: Duration) {
        self.current = Some((Instant::now(), expected));
        let left = human(self.left());
        if self.bar.is_hidden() {
            (self.say)(&format!("{what} · {left} left"));
        } else {
            self.bar.set_message(format!("{what} · {left} left"));
            self.bar.tick();
        }
    }

    /// It is done; `note` is worth a line of its own.
    pub fn end(&mut self, note: Option<&str>) {
        if let Some((start, expected)) = self.current.take() {
            self.done.0 += expected;
            self.done.1 += start.elapsed();
            self.remaining = self.remaining.saturating_sub(expected);
            self.bar.inc(expected.as_secs());
        }
        if let Some(note) = note {
            self.note(note);
        }
    }

    /// How long all of it will still take: what remains, by how far off expectations were so far.
    pub fn left(&self) -> Duration {
        let (expected, took) = self.done;
        let (expected, took) = (expected + self.believed, took + self.believed);
        if expected.is_zero() {
            self.remaining
        } else {
            self.remaining
                .mul_f64(took.as_secs_f64() / expected.as_secs_f64())
        }
    }

    /// Work that was expected will not be done.
    pub fn leave_out(&mut self, expected: Duration) {
        self.remaining = self.remaining.saturating_sub(expected);
        self.bar.inc(expected.as_secs());
    }

    /// Says a line.
    pub fn note(&self, note: &str) {
        if self.bar.is_hidden() {
            (self.say)(note);
        } else {
            self.bar.println(note);
        }
    }

    /// All is done.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// A length of time for people.
pub fn human(time: Duration) -> String {
    // What remains is never nothing.
    let seconds = time.as_secs_f64().ceil() as u64;
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5999 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 26 checks that are expected to take 0.75 s each, and take 3.1 s: after three of them that is known, and while any
    /// remains it is never said that none does.
    #[test]
    fn what_takes_longer_than_expected_is_said_to() {
        let (expected, took) = (Duration::from_millis(750), Duration::from_millis(3_100));
        let mut progress = Progress::new(expected * 26, Box::new(|_| {}));
        assert_eq!(progress.left(), expected * 26);
        for done in 1..26 {
            progress.done = (expected * done, took * done);
            progress.remaining = expected * (26 - done);
            let (left, truth) = (
                progress.left().as_secs_f64(),
                (took * (26 - done)).as_secs_f64(),
            );
            assert!(
                left > 0.0 && left < 1.05 * truth,
                "after {done}: {left} of {truth}"
            );
            assert!(
                done < 3 || left > 0.6 * truth,
                "after {done}: {left} of {truth}"
            );
            assert_ne!(human(progress.left()), "0 s");
        }
    }
}
