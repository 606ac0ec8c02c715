//! Progress for people: what runs now and when all of it will be done.
//!
//! The estimate adds up what remains to be run, which is known, and corrects it by what has been run.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Shows progress on a terminal, or says one line per run elsewhere.
pub struct Progress {
    bar: ProgressBar,
    say: Box<dyn Fn(&str)>,
    remaining: Duration,
    current: Option<(Instant, Duration)>,
    /// What was expected of work done so far, and what it took.
    done: (Duration, Duration),
}

/// Work that must be done before it says anything about what remains.
const TELLING: Duration = Duration::from_secs(60);

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
        match expected < TELLING {
            true => self.remaining,
            false => self
                .remaining
                .mul_f64(took.as_secs_f64() / expected.as_secs_f64()),
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
    let seconds = time.as_secs();
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5999 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}
