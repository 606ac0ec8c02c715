//! What is known of an answer before it is read: values that were found to be as expected while it arrived
//! ([`crate::stream_scan`]).

use ogive_json::{
    Conditions, PatternValue,
    unfinished::{Advance, Unfinished},
};
use ogive_plan::Plan;

/// How far from the end of what came a look ends, at an item of a list.
const MARGIN: usize = 8 << 10;
/// Smaller values are not remembered.
const VALUE_MIN: usize = 4 << 10;

/// A value of an answer, and what it should look like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) start: usize,
    pub(crate) value: PatternValue,
    /// Containers open around it, and how many may be.
    pub(crate) depth: (u32, u32),
}

/// What is known of an answer before it is read.
#[derive(Default)]
pub(crate) struct PartialMatch<'p> {
    /// Values that are as expected, with their ends, in order.
    pub(crate) complete: Vec<(Expected, usize)>,
    /// The one behind them.
    pub(crate) unfinished: Option<(Expected, Unfinished<'p>)>,
}

impl<'p> PartialMatch<'p> {
    /// The end of a value, if it is as expected.
    pub(crate) fn end_of(
        &mut self,
        expected: Expected,
        text: &[u8],
        plan: &'p Plan,
        conditions: &Conditions,
    ) -> Option<usize> {
        if let Some(end) = self.known_end(expected) {
            return Some(end);
        }
        match &mut self.unfinished {
            Some((this, unfinished)) if *this == expected => {
                match unfinished.go_on(text, usize::MAX, conditions) {
                    Advance::End(end) => Some(end),
                    Advance::Paused | Advance::Stuck => None,
                }
            }
            _ => {
                let Expected {
                    start,
                    value,
                    depth,
                } = expected;
                let pattern = &plan.derived().pattern;
                pattern.matches(text, start, value, conditions, depth)
            }
        }
    }
    /// Bytes of which something is known.
    pub(crate) fn bytes(&self) -> usize {
        let complete = self.complete.iter().map(|(at, end)| end - at.start);
        let unfinished = self.unfinished.iter();
        let unfinished = unfinished.map(|(at, unfinished)| unfinished.position() - at.start);
        complete.chain(unfinished).sum()
    }
    fn known_end(&self, expected: Expected) -> Option<usize> {
        let (start, list) = (expected.start, &self.complete);
        let at = list.binary_search_by_key(&start, |(known, _)| known.start);
        let (known, end) = list.get(at.ok()?)?;
        (*known == expected).then_some(*end)
    }
}

/// What a reader knows before it reads.
pub(crate) struct ReaderHints<'s, 'p> {
    pub(crate) head: &'s mut PartialMatch<'p>,
    /// All that has come, if that is not all there will be.
    pub(crate) received: Option<ReceivedText<'s>>,
}

/// Whether there is anything to know, or to do, when values are read that can be used as they stand.
pub(crate) enum Hints<'s, 'p> {
    Nothing,
    Known(ReaderHints<'s, 'p>),
    /// It is counted what they cost.
    Counted,
}

/// A text that goes on.
#[derive(Clone, Copy)]
pub(crate) struct ReceivedText<'s> {
    pub(crate) text: &'s [u8],
    pub(crate) eager: bool,
}

impl ReceivedText<'_> {
    /// Where a look stops.
    pub(crate) fn until(self) -> usize {
        let margin = if self.eager { 8 } else { MARGIN };
        self.text.len().saturating_sub(margin)
    }
}

/// What comes of a value that may be known.
pub(crate) enum Passing {
    /// It is as expected, and ends here.
    End(usize),
    /// It is not.
    No,
    /// It is, as far as there is text.
    PartialAnswer,
}

impl<'p> ReaderHints<'_, 'p> {
    /// Looks at a value.
    pub(crate) fn pass(
        &mut self,
        expected: Expected,
        text: &[u8],
        plan: &'p Plan,
        conditions: &Conditions,
    ) -> Passing {
        let Some(received) = self.received else {
            return match self.head.end_of(expected, text, plan, conditions) {
                Some(end) => Passing::End(end),
                None => Passing::No,
            };
        };
        if let Some(end) = self.head.known_end(expected) {
            return Passing::End(end);
        }
        let pattern = &plan.derived().pattern;
        let Expected {
            start,
            value,
            depth,
        } = expected;
        let mut unfinished = Unfinished::new(pattern, start, value, depth);
        match unfinished.go_on(received.text, received.until(), conditions) {
            Advance::End(end) => {
                if received.eager || end - start >= VALUE_MIN {
                    self.head.add(expected, end);
                }
                Passing::End(end)
            }
            Advance::Paused => {
                self.head.unfinished = Some((expected, unfinished));
                Passing::PartialAnswer
            }
            Advance::Stuck => Passing::No,
        }
    }
}

impl PartialMatch<'_> {
    /// Remembers a value behind all others. One inside of another that is known need not be.
    pub(crate) fn add(&mut self, expected: Expected, end: usize) {
        let is_behind = |(_, before): &(Expected, usize)| *before <= expected.start;
        if self.complete.last().is_none_or(is_behind) {
            self.complete.push((expected, end));
        }
    }
    /// Where the last known value ends, and how many bytes before are of no known value.
    pub(crate) fn reach(&self) -> (usize, usize) {
        let reach = self.complete.last().map_or(0, |(_, end)| *end);
        let known = self.complete.iter().map(|(at, end)| end - at.start);
        (reach, reach - known.sum::<usize>())
    }
}
