//! Subgraphs that change: files are watched, running subgraphs polled, and everything composed again.
//!
//! Files are looked at by size, time and identity, which needs no help of the operating system and works on every
//! mounted volume; a file counts when two looks agree, so that one that is still being written is left alone. Running
//! subgraphs are asked again and again with the entity tag of their last answer; one that fails is left alone for
//! longer and longer. A subgraph that does not answer keeps its last schema, at the start that of the cache.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use ogive_base::{Diagnostic, Severity, without_secrets};
use ogive_files::Pipes;
use ogive_sources::{FileLook, FileLooks, FirstLook};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

use crate::{
    Refused, codes,
    inputs::{Entry, Inputs, Origin, read_text},
    introspect::{Answer, introspect},
    load::{Loaded, SchemaCache, entry_loaded, unanswered},
};

/// How to watch.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// Time between two looks at the files; default 25 ms.
    pub look: Duration,
    /// Time between two questions to a running subgraph; default 1 s.
    pub poll: Duration,
    /// Longest time a subgraph that fails is left alone; default 30 s.
    pub poll_max: Duration,
    /// Where answers are kept.
    pub cache: Option<SchemaCache>,
}

impl Default for LiveOptions {
    fn default() -> Self {
        LiveOptions {
            look: Duration::from_millis(25),
            poll: Duration::from_secs(1),
            poll_max: Duration::from_secs(30),
            cache: None,
        }
    }
}

/// Answer of a subgraph: its name, where it was asked, and what it said.
type Answered = (String, Origin, Result<Answer, String>);

/// Subgraphs that are watched.
#[derive(Debug)]
pub struct Live {
    inputs: Inputs,
    options: LiveOptions,
    states: BTreeMap<String, State>,
    /// Lists and folders.
    watched: FileLooks,
    /// What is wrong with lists and folders.
    refused: Option<Refused>,
    answers: (mpsc::Sender<Answered>, mpsc::Receiver<Answered>),
    /// What changed since somebody asked.
    changes: Vec<String>,
}

#[derive(Debug)]
struct State {
    entry: Entry,
    sdl: Option<Arc<str>>,
    /// Why the newest schema is not known.
    trouble: Option<Diagnostic>,
    /// How the file looked when it was read.
    look: Option<FileLook>,
    /// How it looked the last time it differed from `look`.
    pending: Option<FileLook>,
    etag: Option<String>,
    failures: u32,
    asking: bool,
    next: Instant,
}

/// What there is to compose.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Every subgraph whose schema is known, in order of names.
    pub loaded: Vec<Loaded>,
    /// Subgraphs and lists that cannot be read now; warnings where an older schema stands in, else errors.
    pub troubles: Vec<Diagnostic>,
    /// Troubles with a list of subgraphs, which has a text to point into.
    pub refused: Option<Refused>,
}

impl Snapshot {
    /// Whether every subgraph is known, be it from the cache.
    pub fn is_complete(&self) -> bool {
        self.refused.is_none() && self.troubles.iter().all(|t| t.severity != Severity::Error)
    }
}

impl Live {
    /// Reads everything once: files, and running subgraphs all at the same time.
    pub async fn start(inputs: Inputs, options: LiveOptions) -> Result<Live, Refused> {
        let resolved = inputs.resolve()?;
        let mut live = Live {
            inputs,
            options,
            states: BTreeMap::new(),
            watched: watched(&resolved.watched, &FileLooks::default()),
            refused: None,
            answers: mpsc::channel(64),
            changes: Vec::new(),
        };
        live.enter(resolved.entries);
        live.ask_due();
        while live.states.values().any(|s| s.asking) {
            if let Some(answer) = live.answers.1.recv().await {
                live.take(answer);
            }
        }
        Ok(live)
    }

    /// What there is now.
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot {
            refused: self.refused.clone(),
            ..Snapshot::default()
        };
        for state in self.states.values() {
            if let Some(sdl) = &state.sdl {
                let loaded = entry_loaded(&state.entry, Arc::clone(sdl));
                snapshot.loaded.push(loaded);
            }
            snapshot.troubles.extend(state.trouble.clone());
        }
        snapshot
    }

    /// What changed since this was asked last, for people: lists, and subgraphs with their files or addresses.
    pub fn take_changes(&mut self) -> Vec<String> {
        let mut changes = std::mem::take(&mut self.changes);
        changes.dedup();
        changes
    }

    /// Waits until something changed.
    pub async fn changed(&mut self) {
        loop {
            let mut changed = self.look_at_lists();
            changed |= self.look_at_files();
            self.ask_due();
            if changed {
                return;
            }
            tokio::select! {
                () = sleep(self.options.look) => {}
                Some(answer) = self.answers.1.recv() => {
                    if self.take(answer) {
                        return;
                    }
                }
            }
        }
    }

    /// Takes over new entries, keeping what is known of those that stayed.
    fn enter(&mut self, entries: Vec<Entry>) {
        let mut old = std::mem::take(&mut self.states);
        for entry in entries {
            let state = match old.remove(&entry.name) {
                Some(mut state) if state.entry.origin == entry.origin => {
                    state.entry = entry;
                    state
                }
                _ => State::new(entry),
            };
            self.states.insert(state.entry.name.clone(), state);
        }
    }

    fn look_at_lists(&mut self) -> bool {
        let now = self.watched.again();
        if now == self.watched {
            return false;
        }
        match self.inputs.resolve() {
            Ok(resolved) => {
                let mut entries: Vec<&Entry> = resolved.entries.iter().collect();
                entries.sort_by(|a, b| a.name.cmp(&b.name));
                let same = entries
                    .into_iter()
                    .eq(self.states.values().map(|s| &s.entry));
                let changed = self.refused.take().is_some() || !same;
                if changed {
                    self.changes.extend(now.changed_since(&self.watched));
                }
                self.watched = watched(&resolved.watched, &now);
                self.enter(resolved.entries);
                changed
            }
            Err(refused) => {
                self.changes.extend(now.changed_since(&self.watched));
                self.watched = now;
                self.refused = Some(refused);
                true
            }
        }
    }

    fn look_at_files(&mut self) -> bool {
        let mut changed = false;
        for state in self.states.values_mut() {
            let Origin::File(path) = &state.entry.origin else {
                continue;
            };
            let now = FileLook::of(path);
            if now == state.look {
                state.pending = now;
            } else if now == state.pending {
                state.look = now;
                let what = format!(
                    "`{}` of the subgraph `{}`",
                    path.display(),
                    state.entry.name
                );
                self.changes.push(what);
                state.read();
                changed = true;
            } else {
                state.pending = now;
            }
        }
        changed
    }

    /// Asks those whose turn it is, in the background.
    fn ask_due(&mut self) {
        let now = Instant::now();
        for state in self.states.values_mut() {
            let Origin::Url { url, headers } = &state.entry.origin else {
                continue;
            };
            if state.asking || state.next > now {
                continue;
            }
            state.asking = true;
            let (url, headers, etag) = (url.clone(), headers.clone(), state.etag.clone());
            let (name, origin) = (state.entry.name.clone(), state.entry.origin.clone());
            let sender = self.answers.0.clone();
            tokio::spawn(async move {
                let answer = introspect(&url, &headers, etag.as_deref()).await;
                // Nobody waits any more when the process ends.
                let _ = sender.send((name, origin, answer)).await;
            });
        }
    }

    /// Takes an answer in; tells whether it changes anything.
    fn take(&mut self, (name, origin, answer): Answered) -> bool {
        let Some(state) = self.states.get_mut(&name) else {
            return false;
        };
        state.asking = false;
        // The list may say something else by now.
        let Origin::Url { url, .. } = &origin else {
            return false;
        };
        if state.entry.origin != origin {
            return false;
        }
        let cache = self.options.cache.as_ref();
        match answer {
            Ok(answer) => {
                state.next = Instant::now() + self.options.poll;
                state.failures = 0;
                let mut changed = state.trouble.take().is_some();
                if let Answer::Sdl { sdl, etag } = answer {
                    state.etag = etag;
                    if state.sdl.as_deref() != Some(&*sdl) {
                        if let Some(cache) = cache
                            && let Err(error) = cache.put(&name, url, &sdl)
                        {
                            tracing::debug!("the schema of `{name}` is not cached: {error}");
                        }
                        state.sdl = Some(sdl.into());
                        let url = without_secrets(url);
                        self.changes.push(format!("the subgraph `{name}` at {url}"));
                        changed = true;
                    }
                }
                changed
            }
            Err(why) => {
                state.failures = state.failures.saturating_add(1);
                let wait = self.options.poll * (1 << state.failures.min(10));
                state.next = Instant::now() + wait.min(self.options.poll_max);
                let before = state.trouble.take();
                let known = state.sdl.is_some();
                if !known {
                    state.sdl = cache.and_then(|c| c.get(&name, url)).map(Into::into);
                }
                let mut trouble = unanswered(&name, url, &why).diagnostics.remove(0);
                if state.sdl.is_some() {
                    trouble.severity = Severity::Warning;
                    trouble.code = codes::SUBGRAPH_FROM_CACHE;
                    trouble.notes.push(if known {
                        "its last schema stays".to_owned()
                    } else {
                        "its schema is the one of the cache".to_owned()
                    });
                }
                let changed = before.is_none();
                state.trouble = Some(trouble);
                changed
            }
        }
    }
}

impl State {
    fn new(entry: Entry) -> Self {
        let mut state = State {
            look: None,
            pending: None,
            sdl: None,
            trouble: None,
            etag: None,
            failures: 0,
            asking: false,
            next: Instant::now(),
            entry,
        };
        state.read();
        state
    }

    /// Reads what needs no asking. A file that is gone keeps its last text.
    fn read(&mut self) {
        match &self.entry.origin {
            Origin::File(path) => {
                self.look = FileLook::of(path);
                self.pending = self.look;
                match read_text(path, "subgraph", Pipes::Refused) {
                    Ok(text) => {
                        self.sdl = Some(text.into());
                        self.trouble = None;
                    }
                    Err(mut refused) => self.trouble = refused.diagnostics.pop(),
                }
            }
            Origin::Text { sdl, .. } => self.sdl = Some(sdl.as_str().into()),
            Origin::Url { .. } => {}
        }
    }
}

/// How these looked before they were read. What was not looked at then is read again: it may have changed since.
fn watched(paths: &[PathBuf], before: &FileLooks) -> FileLooks {
    FileLooks::look(paths.iter().cloned()).as_before(before, FirstLook::Changed)
}
