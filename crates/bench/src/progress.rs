//! Progress for people: what runs now and when all of it will be done.
//!
//! The estimate adds up what remains to be run, which is known, instead of extrapolating what has been run.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Shows progress on a terminal, or says one line per run elsewhere.
pub struct Progress {
    bar: ProgressBar,
    say: Box<dyn Fn(&str)>,
    remaining: Duration,
    current: Option<(Instant, Duration)>,
}

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
        let left = human(self.remaining);
        if self.bar.is_hidden() {
            (self.say)(&format!("{what} · {left} left"));
        } else {
            self.bar.set_message(format!("{what} · {left} left"));
            self.bar.tick();
        }
    }

    /// It is done; `note` is worth a line of its own.
    pub fn end(&mut self, note: Option<&str>) {
        if let Some((_, expected)) = self.current.take() {
            self.remaining = self.remaining.saturating_sub(expected);
            self.bar.inc(expected.as_secs());
        }
        if let Some(note) = note {
            self.note(note);
        }
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
