//! What went wrong with a part of the data: it is missing in the result, and a problem says why.

use ogive_base::Span;
use ogive_json::{JsonStr, Kind, ScanError, Scanner};

use super::heap::{Heap, Slice};
use crate::kinds::Kinds;

/// Most keys and indexes of a path that are shown.
const PATH_STEPS_MAX: usize = 64;
/// Most bytes of one key that are shown.
const KEY_BYTES_MAX: usize = 100;

/// Why a part of the result is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// One sentence.
    pub message: String,
    /// What kinds of values would do, if it is about a value of another kind.
    pub expected: Option<Kinds>,
    /// Where the value stands in an input: `$.items[2].name`, `$args.id`. Empty for values that the program made.
    pub path: String,
    /// Where in the mapping it happened.
    pub span: Span,
}

/// A problem whose path was not looked for yet.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) message: String,
    pub(super) expected: Option<Kinds>,
    /// The value that it is about.
    pub(super) place: Option<Slice>,
    /// A key of that value.
    pub(super) key: Option<String>,
    pub(super) span: Span,
}

/// The problems of a run.
#[derive(Default)]
pub(super) struct Problems {
    found: Vec<Found>,
    /// Problems that were not kept.
    dropped: u64,
}

/// How many problems there were at a time.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    found: usize,
    dropped: u64,
}

impl Problems {
    pub(super) fn total(&self) -> u64 {
        self.found.len() as u64 + self.dropped
    }
    /// Keeps a problem, or counts it only.
    pub(super) fn push(&mut self, most: usize, make: impl FnOnce() -> Found) {
        if self.found.len() < most {
            self.found.push(make());
        } else {
            self.dropped += 1;
        }
    }
    pub(super) fn mark(&self) -> Mark {
        Mark {
            found: self.found.len(),
            dropped: self.dropped,
        }
    }
    /// Forgets what was found since, because it was expected.
    pub(super) fn forget(&mut self, since: Mark) {
        self.found.truncate(since.found);
        self.dropped = since.dropped;
    }
    /// Looks for the paths.
    pub(super) fn locate(self, heap: &Heap<'_>) -> Vec<Problem> {
        let located = self.found.into_iter().map(|found| Problem {
            path: path(heap, found.place, found.key.as_deref()),
            message: found.message,
            expected: found.expected,
            span: found.span,
        });
        located.collect()
    }
}

/// The path of a key of a value of an input.
fn path(heap: &Heap<'_>, place: Option<Slice>, key: Option<&str>) -> String {
    let Some(place) = place else {
        return String::new();
    };
    let Some(mut path) = place.source.name() else {
        return String::new();
    };
    // The text was read before, so this finds the place.
    let steps = steps_to(heap.text(place.source), place).unwrap_or_default();
    let shown = steps.iter().take(PATH_STEPS_MAX);
    shown.for_each(|step| step.show(&mut path));
    if steps.len() > PATH_STEPS_MAX {
        path.push_str("...");
    }
    if let Some(key) = key {
        show_key(key, &mut path);
    }
    path
}

/// One step to a place.
enum PathStep<'t> {
    Key(JsonStr<'t>),
    Index(usize),
}

impl PathStep<'_> {
    fn show(&self, path: &mut String) {
        match self {
            PathStep::Key(key) => show_key(&key.unescape(), path),
            PathStep::Index(index) => path.push_str(&format!("[{index}]")),
        }
    }
}

fn show_key(key: &str, path: &mut String) {
    let is_plain = key
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let key = ogive_base::bounded(key, KEY_BYTES_MAX);
    if is_plain {
        path.push_str(&format!(".{key}"));
    } else {
        path.push_str(&format!(".{:?}", &*key));
    }
}

/// A list or an object that is open where a scanner stands.
struct Open<'t> {
    kind: Kind,
    /// The step from it to the value that the scanner reads.
    step: PathStep<'t>,
}

/// The steps from the value of a text to the value at a place. Reads what is before the place, once.
fn steps_to(text: &[u8], place: Slice) -> Result<Vec<PathStep<'_>>, ScanError> {
    let mut scanner = Scanner::with_depth_max(text, Scanner::DEPTH_MAX);
    let mut open: Vec<Open<'_>> = Vec::new();
    loop {
        let kind = scanner.peek()?;
        if scanner.position() >= place.start as usize {
            return Ok(open.into_iter().map(|open| open.step).collect());
        }
        let enters = match kind {
            Kind::Object => scanner.begin_object()?,
            Kind::Array => scanner.begin_array()?,
            _ => scanner.skip_value().map(|_| false)?,
        };
        if enters {
            let step = match kind {
                Kind::Object => PathStep::Key(scanner.key()?),
                _ => PathStep::Index(0),
            };
            open.push(Open { kind, step });
            continue;
        }
        // Closes what ends here.
        while let Some(innermost) = open.last_mut() {
            if innermost.advance(&mut scanner)? {
                break;
            }
            open.pop();
        }
        if open.is_empty() {
            return Ok(Vec::new());
        }
    }
}

impl<'t> Open<'t> {
    /// Goes to the next item or member; false if there is none.
    fn advance(&mut self, scanner: &mut Scanner<'t>) -> Result<bool, ScanError> {
        let more = match self.kind {
            Kind::Object => scanner.next_member()?,
            _ => scanner.next_item()?,
        };
        if more {
            self.step = match self.step {
                PathStep::Key(_) => PathStep::Key(scanner.key()?),
                PathStep::Index(index) => PathStep::Index(index + 1),
            };
        }
        Ok(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::heap::Source;

    fn shown(text: &str, value: &str) -> String {
        let start = text.find(value).unwrap();
        let place = Slice::new(Source::BODY, start..start + value.len());
        let mut path = String::from("$");
        let steps = steps_to(text.as_bytes(), place).unwrap();
        steps.iter().for_each(|step| step.show(&mut path));
        path
    }

    #[test]
    fn steps_lead_to_the_place() {
        let text = r#" {"a":[1,{"b":[],"c":{}},[[2],{"d e":3}]],"f":{"g":4}}"#;
        for (value, path) in [
            ("{\"a\"", "$"),
            ("1", "$.a[0]"),
            ("[]", "$.a[1].b"),
            ("{}", "$.a[1].c"),
            ("2", "$.a[2][0][0]"),
            ("3", "$.a[2][1].\"d e\""),
            ("4", "$.f.g"),
        ] {
            assert_eq!(shown(text, value), path, "{value}");
        }
    }

    #[test]
    fn what_is_behind_the_place_is_not_read() {
        assert_eq!(shown("[[0, 1", "1"), "$[0][1]");
    }
}
