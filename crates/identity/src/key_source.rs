//! A key set that is kept up beside requests, on a thread of its own.
//!
//! It is fetched at the start, then again and again, and at once if a token names a key that is not there
//! ([`KeySource::refetch`]): all requests that wait for that share one fetch, and there are two in so much time at the
//! most, whatever names tokens have. A fetch that fails changes nothing. What came last is kept on disk, and used if the
//! first fetch fails.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use arc_swap::ArcSwapOption;
use ogive_files::Pipes;
use ogive_sources::SourceResult;
use tokio::sync::watch;

use crate::{
    digest::{Digest, digest_of},
    jwk::KeySet,
    key_fetch::{ANSWER_BYTES_MAX, Answer, KeyReader},
    key_origin::{KeyOrigin, KeySourceOptions},
};

/// How often a set is fetched whose answer does not say how long it is fresh.
const INTERVAL_DEFAULT: Duration = Duration::from_secs(60);
/// What an answer may say of that.
const INTERVAL_MIN: Duration = Duration::from_secs(30);
const INTERVAL_MAX: Duration = Duration::from_secs(3_600);
/// How often a file is looked at.
const FILE_INTERVAL: Duration = Duration::from_secs(1);
/// The first of the pauses after fetches that failed.
const BACKOFF: Duration = Duration::from_secs(1);

/// What came of asking for the keys once more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Refetch {
    /// They are what their origin has now, or had a moment ago: less than the shortest time between fetches.
    Fresh,
    /// The last fetch failed.
    Failed,
}

/// So many fetches may be asked for in the shortest time between them: a forged token must not use up what the token of a
/// new key needs.
const BURST: usize = 2;

/// A key set that is kept up as long as this lives.
#[derive(Debug)]
pub struct KeySource {
    shared: Arc<Shared>,
    /// Ends the thread when it is dropped.
    _stop: watch::Sender<()>,
}

#[derive(Debug)]
struct Shared {
    options: KeySourceOptions,
    keys: ArcSwapOption<KeySet>,
    /// Whether the first fetch is over.
    tried: watch::Sender<bool>,
    /// Fetches that requests have asked for, numbered.
    demand: watch::Sender<u64>,
    /// When the last of them were asked for, the last one at the end.
    last_demands: Mutex<[Option<Instant>; BURST]>,
    /// The last of the numbered fetches that is over, and whether it succeeded.
    answered: watch::Sender<(u64, bool)>,
    fetches: AtomicU64,
    failures: AtomicU64,
    /// Why the last fetch failed.
    failure: Mutex<Option<String>>,
    /// Since when fetches fail, if they do, and how old the keys were then.
    failing_since: Mutex<Option<(Instant, Duration)>>,
    /// The digest of the text that is on disk, once it was written.
    kept: Mutex<Option<Digest>>,
}

/// Seconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

impl KeySource {
    /// Begins to keep a set up.
    pub fn start(options: KeySourceOptions) -> Self {
        let (stop, stopped) = watch::channel(());
        let shared = Arc::new(Shared {
            options,
            keys: ArcSwapOption::empty(),
            tried: watch::channel(false).0,
            demand: watch::channel(0).0,
            last_demands: Mutex::default(),
            answered: watch::channel((0, false)).0,
            fetches: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            failure: Mutex::default(),
            failing_since: Mutex::default(),
            kept: Mutex::default(),
        });
        let keeping = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("ogive-keys".into());
        let started = thread.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build();
            match runtime {
                Ok(runtime) => {
                    runtime.block_on(keep_up(&keeping, stopped));
                    // Looking up a name must not hold up the end.
                    runtime.shutdown_background();
                }
                Err(error) => keeping.failed(&error.to_string()),
            }
        });
        if let Err(error) = started {
            shared.failed(&error.to_string());
        }
        KeySource {
            shared,
            _stop: stop,
        }
    }

    /// How it is kept up.
    pub fn options(&self) -> &KeySourceOptions {
        &self.shared.options
    }
    /// The keys; `None` as long as none have come.
    pub fn keys(&self) -> Option<Arc<KeySet>> {
        self.shared.keys.load_full()
    }
    /// How often keys were fetched.
    pub fn fetches(&self) -> u64 {
        self.shared.fetches.load(Ordering::Relaxed)
    }
    /// How often that failed.
    pub fn failures(&self) -> u64 {
        self.shared.failures.load(Ordering::Relaxed)
    }
    /// Why the last fetch failed, if it did.
    pub fn failure(&self) -> Option<String> {
        let failure = self.shared.failure.lock();
        failure.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the first fetch is over. Tells whether there are keys.
    pub async fn tried(&self) -> bool {
        let mut tried = self.shared.tried.subscribe();
        let limit = self.limit();
        let _ = tokio::time::timeout(limit, tried.wait_for(|tried| *tried)).await;
        self.keys().is_some()
    }

    /// Has the keys fetched again, unless that was done so often a moment ago that the last fetch still speaks for them.
    pub async fn refetch(&self) -> Refetch {
        let mut answered = self.shared.answered.subscribe();
        let number = {
            let last = self.shared.last_demands.lock();
            let mut last = last.unwrap_or_else(PoisonError::into_inner);
            let number = *self.shared.demand.borrow();
            let is_soon = |last: Instant| last.elapsed() < self.shared.options.refetch_interval;
            if number > answered.borrow_and_update().0 {
                number
            } else if last[0].is_some_and(is_soon) {
                return match self.failure() {
                    None => Refetch::Fresh,
                    Some(_) => Refetch::Failed,
                };
            } else {
                last.rotate_left(1);
                last[BURST - 1] = Some(Instant::now());
                self.shared.demand.send_replace(number + 1);
                number + 1
            }
        };
        let limit = self.limit();
        let over = answered.wait_for(|(done, _)| *done >= number);
        match tokio::time::timeout(limit, over).await {
            Ok(Ok(answered)) if answered.1 => Refetch::Fresh,
            _ => Refetch::Failed,
        }
    }

    /// Fetching may take two requests, one of them for where the keys are.
    fn limit(&self) -> Duration {
        self.shared.options.timeout * 2 + Duration::from_secs(1)
    }
}

/// Fetches until whoever wants the keys is gone.
async fn keep_up(shared: &Shared, mut stopped: watch::Receiver<()>) {
    tokio::select! {
        () = fetch_for_ever(shared) => {}
        // Nothing is ever sent: it is an error when the other end goes.
        _ = stopped.changed() => {}
    }
}

async fn fetch_for_ever(shared: &Shared) {
    let options = &shared.options;
    let mut fetcher = KeyReader::new(options);
    let mut demand = shared.demand.subscribe();
    let mut failed_in_a_row = 0u32;
    loop {
        // Whoever asks from now on may mean something newer.
        let number = *demand.borrow_and_update();
        let is_file = matches!(options.origin, KeyOrigin::File(_));
        let fetched = match fetcher.fetch().await {
            Ok(Answer::Same) => Ok(None),
            Ok(Answer::Text { text, max_age }) => {
                shared.fetches.fetch_add(1, Ordering::Relaxed);
                let taken = shared.take(&text);
                if taken.is_err() {
                    fetcher.forget();
                }
                taken.map(|()| max_age)
            }
            Err(why) => Err(why),
        };
        let usual = match options.poll_interval {
            _ if is_file => FILE_INTERVAL,
            Some(interval) => interval,
            None => INTERVAL_DEFAULT,
        };
        let is_good = fetched.is_ok();
        let pause = match fetched {
            Ok(max_age) => {
                options.tell(SourceResult::Same);
                failed_in_a_row = 0;
                shared.succeeded();
                shared.confirm();
                match max_age.filter(|_| options.poll_interval.is_none()) {
                    Some(age) => age.clamp(INTERVAL_MIN, INTERVAL_MAX),
                    None => usual,
                }
            }
            Err(why) => {
                shared.failed(&why);
                if options.max_stale.is_some() {
                    // What is fetched next has to be the whole set: its keys may have ended.
                    fetcher.forget();
                }
                let pause = BACKOFF * 2u32.saturating_pow(failed_in_a_row.min(8));
                failed_in_a_row = failed_in_a_row.saturating_add(1);
                let pause = pause.min(usual);
                match options.max_stale {
                    // To be there when its keys end.
                    Some(limit) => pause.min(limit.max(BACKOFF)),
                    None => pause,
                }
            }
        };
        shared.tried.send_replace(true);
        shared.answered.send_replace((number, is_good));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = demand.changed() => {}
        }
    }
}

impl Shared {
    /// Takes a set, and keeps it on disk.
    fn take(&self, text: &[u8]) -> Result<(), String> {
        self.read(text)?;
        let Some(path) = self.options.kept_file() else {
            return Ok(());
        };
        // By its text: a set with the same names may have other keys.
        let digest = digest_of(text);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if *kept == Some(digest) {
            return Ok(());
        }
        match keep(&path, text) {
            Ok(()) => *kept = Some(digest),
            Err(error) => {
                let path = path.display().to_string();
                tracing::warn!(%error, path, "the key set cannot be kept on disk");
            }
        }
        Ok(())
    }

    /// Notes with the file on disk that its keys were what their origin has: `max_stale` counts from there after a restart.
    fn confirm(&self) {
        if self.options.max_stale.is_none() {
            return;
        }
        let Some(path) = self.options.kept_file() else {
            return;
        };
        let file = std::fs::File::options().append(true).open(path);
        let noted = file.and_then(|file| file.set_modified(SystemTime::now()));
        if let Err(error) = noted {
            tracing::debug!(%error, "when the kept key set was confirmed cannot be noted");
        }
    }

    fn read(&self, text: &[u8]) -> Result<(), String> {
        let set = KeySet::parse(text, self.options.algorithms)?;
        let from = self.options.shown();
        let (now, before) = (now(), self.keys.load_full());
        let is_other = before.as_ref().is_none_or(|before| !before.is_same(&set));
        let (skipped, has_none) = (set.skipped.clone(), set.keys().is_empty());
        let set = match &before {
            Some(before) => set.after(before, now, self.options.grace.as_secs()),
            None => set,
        };
        if is_other {
            self.options.tell(SourceResult::Taken);
            tracing::debug!(from, keys = set.len(now), "key set");
            if has_none {
                tracing::warn!(from, "the key set is empty: all its keys are taken back");
            }
            for why in skipped {
                tracing::warn!(from, "a key is left out: {why}");
            }
        }
        self.keys.store(Some(Arc::new(set)));
        Ok(())
    }

    fn succeeded(&self) {
        let since = self.failing_since.lock();
        *since.unwrap_or_else(PoisonError::into_inner) = None;
        let failure = self.failure.lock();
        *failure.unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Notes and logs a failure; falls back on the disk if there are no keys at all.
    fn failed(&self, why: &str) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let failure = self.failure.lock();
        *failure.unwrap_or_else(PoisonError::into_inner) = Some(why.to_owned());
        let since = self.failing_since.lock();
        let since = *since
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(|| (Instant::now(), Duration::ZERO));
        if let Some(keys) = &*self.keys.load() {
            let limit = self.options.max_stale;
            let (since, age) = since;
            if limit.is_some_and(|limit| since.elapsed() + age >= limit) {
                keys.end(now());
                let why =
                    format!("none for longer than `max_stale`, its tokens are refused: {why}");
                self.options.tell(SourceResult::Missing(&why));
                return;
            }
            self.options.tell(SourceResult::Kept(why));
            return;
        }
        let kept = self.options.kept_file().and_then(|path| {
            let text = ogive_files::read(&path, ANSWER_BYTES_MAX as u64, Pipes::Refused).ok()?;
            Some((text, age(&path)))
        });
        let limit = self.options.max_stale;
        if let (Some((_, age)), Some(limit)) = (&kept, limit)
            && *age >= limit
        {
            let why = format!("the last one on disk is older than `max_stale`: {why}");
            return self.options.tell(SourceResult::Missing(&why));
        }
        if let (Some((_, age)), Some(_)) = (&kept, limit) {
            let since = self.failing_since.lock();
            *since.unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), *age));
        }
        match kept.map(|(text, _)| self.read(&text)) {
            Some(Ok(())) => {
                let from = self.options.shown();
                tracing::warn!(from, "the key set that was kept on disk last is used");
                self.options.tell(SourceResult::Kept(why));
            }
            _ => self.options.tell(SourceResult::Missing(why)),
        }
    }
}

/// How long ago a file was written or confirmed.
fn age(path: &std::path::Path) -> Duration {
    let modified = std::fs::metadata(path).and_then(|found| found.modified());
    let age = modified
        .ok()
        .and_then(|at| SystemTime::now().duration_since(at).ok());
    age.unwrap_or_default()
}

/// Writes a file as a whole, for its owner only.
fn keep(path: &std::path::Path, text: &[u8]) -> std::io::Result<()> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}
