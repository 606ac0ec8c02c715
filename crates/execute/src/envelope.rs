//! Reading the outer object of a subgraph's answer: `data`, `errors`, and the values of look-ups inside `data`.
//!
//! [`Envelope::read_with`] validates the whole body once, together with whoever reads `data` meanwhile; everything after
//! works on ranges of it.

use std::{borrow::Cow, ops::Range};

use bytes::Bytes;
use ogive_json::{JsonStr, Kind, ScanError, Scanner};
use ogive_plan::{Fetch, Lookup};

use crate::{
    limits::{ExecuteLimits, ExecuteOptions},
    stop::{KeyComparisons, Stop},
};

/// A value of the answer: what it is and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) kind: Kind,
    pub(crate) range: Range<usize>,
}

impl Part {
    pub(crate) fn read(scanner: &mut Scanner<'_>) -> Result<Self, ScanError> {
        let kind = scanner.peek()?;
        let range = scanner.skip_value()?;
        Ok(Part { kind, range })
    }
}

/// Most steps of an error's path: more than any operation is deep, lists counted.
const PATH_STEPS_MAX: usize = 256;

/// Where the parts of a GraphQL response stand.
#[derive(Debug, Default)]
pub(crate) struct Envelope {
    data: Option<Part>,
    errors: Option<Part>,
}

/// One entry of a subgraph's `errors`.
#[derive(Debug, Default)]
pub(crate) struct SubgraphError<'a> {
    pub(crate) message: Option<Cow<'a, str>>,
    pub(crate) path: Option<Vec<Step<'a>>>,
    pub(crate) code: Option<Cow<'a, str>>,
    /// Other extensions, as JSON members each followed by a comma.
    pub(crate) extensions: Vec<u8>,
}

/// One step of a subgraph's error path.
#[derive(Debug, PartialEq)]
pub(crate) enum Step<'a> {
    Key(Cow<'a, str>),
    Index(u32),
}

impl Envelope {
    /// Validates the whole body and finds the parts.
    pub(crate) fn read(body: &Bytes, limits: &ExecuteLimits) -> Result<Self, ScanError> {
        Envelope::read_with(body, limits, Part::read)
    }

    /// Validates the whole body and finds the parts, but leaves `data` to `read_data`. Of duplicate members the first
    /// counts.
    pub(crate) fn read_with<E: From<ScanError>>(
        body: &[u8],
        limits: &ExecuteLimits,
        mut read_data: impl FnMut(&mut Scanner<'_>) -> Result<Part, E>,
    ) -> Result<Self, E> {
        let mut scanner = Scanner::with_depth_max(body, limits.depth_max);
        let mut envelope = Envelope::default();
        let mut more = scanner.begin_object()?;
        while more {
            let key = scanner.key()?;
            if key.is("data") && envelope.data.is_none() {
                envelope.data = Some(read_data(&mut scanner)?);
            } else {
                let part = Part::read(&mut scanner)?;
                if key.is("errors") {
                    envelope.errors.get_or_insert(part);
                }
            }
            more = scanner.next_member()?;
        }
        scanner.finish()?;
        Ok(envelope)
    }

    /// Whether `data` is an object.
    pub(crate) fn has_data(&self) -> bool {
        self.data
            .as_ref()
            .is_some_and(|data| data.kind == Kind::Object)
    }

    /// Whether `data` was given up: execution began, and an error nulled all of it (specification 7.1.2).
    pub(crate) fn has_null_data(&self) -> bool {
        self.data
            .as_ref()
            .is_some_and(|data| data.kind == Kind::Null)
    }

    /// The subgraph's errors, no more than may be shown and one, with the members of their extensions that are in
    /// `extensions`, and how many there are beyond; `None` if the list is malformed.
    pub(crate) fn errors<'a>(
        &self,
        body: &'a Bytes,
        limits: &ExecuteLimits,
        options: ExecuteOptions,
        extensions: &[Box<str>],
    ) -> Option<(Vec<SubgraphError<'a>>, usize)> {
        let part = match &self.errors {
            None => return Some((Vec::new(), 0)),
            Some(part) => part,
        };
        match part.kind {
            Kind::Null => return Some((Vec::new(), 0)),
            Kind::Array => {}
            _ => return None,
        }
        let text = Scanner::with_depth_max(body, limits.depth_max);
        let mut scanner = text.within(part.range.clone());
        let mut errors = Vec::new();
        let mut more = scanner.begin_array().ok()?;
        while more && errors.len() <= limits.errors_max {
            let bytes_max = limits.error_extension_bytes_max;
            let shown = (options, extensions, bytes_max);
            errors.push(SubgraphError::read(&mut scanner, shown).ok()?);
            more = scanner.next_item().ok()?;
        }
        let mut beyond = 0;
        while more {
            scanner.skip_value().ok()?;
            beyond += 1;
            more = scanner.next_item().ok()?;
        }
        Some((errors, beyond))
    }
}

/// The look-up whose answer stands under this key. The one at `expected` is looked at first, then those behind it.
pub(crate) fn lookup_of(lookups: &[Lookup], key: JsonStr<'_>, expected: usize) -> Option<usize> {
    let is = |at: &usize| !lookups[*at].is_reentry() && key.is(&lookups[*at].response_key);
    let expected = expected.min(lookups.len());
    (expected..lookups.len()).chain(0..expected).find(is)
}

/// Reads `data` without looking into it, except for where the look-ups' values stand.
pub(crate) fn find_lookups(
    scanner: &mut Scanner<'_>,
    fetch: &Fetch,
    in_vain: &mut KeyComparisons,
) -> Result<Vec<Option<Part>>, Stop> {
    let mut lookups = vec![None; fetch.lookups.len()];
    let mut expected = 0;
    let mut more = scanner.begin_object()?;
    while more {
        let key = scanner.key()?;
        let part = Part::read(scanner)?;
        if let Some(at) = lookup_of(&fetch.lookups, key, expected) {
            expected = at + 1;
            lookups[at].get_or_insert(part);
        } else {
            in_vain.count(fetch.lookups.len())?;
        }
        more = scanner.next_member()?;
    }
    Ok(lookups)
}

impl<'a> SubgraphError<'a> {
    /// Reads one entry; whatever in it is malformed is left out.
    fn read(
        scanner: &mut Scanner<'a>,
        shown: (ExecuteOptions, &[Box<str>], usize),
    ) -> Result<Self, ScanError> {
        let mut error = SubgraphError::default();
        if scanner.peek()? != Kind::Object {
            scanner.skip_value()?;
            return Ok(error);
        }
        let mut more = scanner.begin_object()?;
        while more {
            let key = scanner.key()?;
            match scanner.peek()? {
                Kind::String if key.is("message") => {
                    error.message = Some(scanner.string()?.unescape());
                }
                Kind::Array if key.is("path") => error.path = Step::read_path(scanner)?,
                Kind::Object if key.is("extensions") => {
                    error.read_extensions(scanner, shown)?;
                }
                _ => {
                    scanner.skip_value()?;
                }
            }
            more = scanner.next_member()?;
        }
        Ok(error)
    }

    fn read_extensions(
        &mut self,
        scanner: &mut Scanner<'a>,
        (options, extensions, bytes_max): (ExecuteOptions, &[Box<str>], usize),
    ) -> Result<(), ScanError> {
        let mut more = scanner.begin_object()?;
        while more {
            let key = scanner.key()?;
            let kind = scanner.peek()?;
            if key.is("code") && kind == Kind::String {
                self.code = Some(scanner.string()?.unescape());
            } else {
                let range = scanner.skip_value()?;
                let ours = key.is("code") || (key.is("service") && options.error_service_names);
                let shown =
                    options.subgraph_error_extensions || extensions.iter().any(|name| key.is(name));
                // A quotation mark on either side, a colon and a comma.
                let len = key.raw().len() + range.len() + 4;
                let fits = self.extensions.len().saturating_add(len) <= bytes_max;
                if shown && !ours && fits {
                    let out = &mut self.extensions;
                    out.push(b'"');
                    out.extend_from_slice(key.raw());
                    out.extend_from_slice(b"\":");
                    out.extend_from_slice(&scanner.text()[range]);
                    out.push(b',');
                }
            }
            more = scanner.next_member()?;
        }
        Ok(())
    }
}

impl<'a> Step<'a> {
    /// Reads a path; `None` if a step is neither a string nor a small whole number, or if there are more than
    /// [`PATH_STEPS_MAX`].
    fn read_path(scanner: &mut Scanner<'a>) -> Result<Option<Vec<Self>>, ScanError> {
        let mut path = Some(Vec::new());
        let mut more = scanner.begin_array()?;
        while more {
            let step = match scanner.peek()? {
                Kind::String => Some(Step::Key(scanner.string()?.unescape())),
                Kind::Number => {
                    let range = scanner.number()?.range;
                    let text = std::str::from_utf8(&scanner.text()[range]).ok();
                    text.and_then(|text| text.parse().ok()).map(Step::Index)
                }
                _ => {
                    scanner.skip_value()?;
                    None
                }
            };
            match (&mut path, step) {
                (Some(path), Some(step)) if path.len() < PATH_STEPS_MAX => path.push(step),
                _ => path = None,
            }
            more = scanner.next_item()?;
        }
        Ok(path)
    }
}
