//! Reading values that look exactly as expected while their text still arrives.
//!
//! An [`Unfinished`] match stands before an item of a list. What is before that does not depend on what will come, so the
//! match goes on from there when there is more text, and ends where [`Pattern::matches`] would have ended with the whole
//! text. Where it stands is an offset, so the text may move.
//!
//! Invariants: as for patterns; a text that is no JSON is never accepted, however it was cut.

use crate::{
    lanes::{self, Job, Lanes},
    pattern::{Begin, Conditions, Frame, Match, Pattern, PatternValue, Walked},
};

/// A match that was begun before all of its text was there.
#[derive(Clone, Debug)]
pub struct Unfinished<'p> {
    pattern: &'p Pattern,
    begin: Begin,
    open: Vec<Frame<'p>>,
    /// Containers that might be opened at first.
    depth_left: u32,
}

/// How far it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// The value is complete, and ends here.
    End(usize),
    /// It goes on with the next text.
    Paused,
    /// It does not go on here: the text ends before the next item that is late enough, or it is not as expected.
    Stuck,
}

impl<'p> Unfinished<'p> {
    /// A match of the value at `at`. `depth` says how many containers are open around it and how many may be.
    pub fn new(pattern: &'p Pattern, at: usize, value: PatternValue, depth: (u32, u32)) -> Self {
        Unfinished {
            pattern,
            begin: Begin::new(at, value),
            open: Vec::new(),
            depth_left: depth.1.saturating_sub(depth.0),
        }
    }
    /// Where it goes on: everything before is as expected.
    pub fn position(&self) -> usize {
        self.begin.at
    }

    /// Goes on to the end of the value, or to the first item of a list of objects or lists that begins at `until` or
    /// later. `text` must begin with what [`Unfinished::position`] has left behind, and the conditions be the same every
    /// time. Linear in what is looked at; after [`Advance::Stuck`] nothing has changed.
    pub fn go_on(&mut self, text: &[u8], until: usize, conditions: &Conditions) -> Advance {
        let mut open = self.open.clone();
        let part = Part {
            job: Match {
                pattern: self.pattern,
                text,
                begin: self.begin,
                conditions,
                depth_left: self.depth_left,
            },
            open: &mut open,
            until,
        };
        match lanes::run(part) {
            Some(Walked::End(end)) => Advance::End(end),
            Some(Walked::Paused(begin)) => {
                (self.begin, self.open) = (begin, open);
                Advance::Paused
            }
            None => Advance::Stuck,
        }
    }
}

/// A match up to somewhere.
struct Part<'j, 'p, 't> {
    job: Match<'p, 't>,
    open: &'j mut Vec<Frame<'p>>,
    until: usize,
}

impl Job for Part<'_, '_, '_> {
    type Output = Option<Walked>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Option<Walked> {
        self.job
            .walk::<L, (), true>(lanes, (self.open, &mut ()), self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PatternField, PatternScalar};

    /// `[{"a": [{"b": Int}], "c": [[String]], "d": Any}]`
    fn pattern() -> (Pattern, PatternValue) {
        let mut pattern = Pattern::default();
        let scalar = PatternValue::scalar;
        let inner = pattern.add_object(vec![PatternField::new("b", 0, scalar(PatternScalar::Int))]);
        let strings = scalar(PatternScalar::String).wrapped(2, 0b10);
        let outer = pattern.add_object(vec![
            PatternField::new("a", 0, PatternValue::object(inner).wrapped(1, 0)),
            PatternField::new("c", 0, strings),
            PatternField::new("d", 1, scalar(PatternScalar::Any)),
        ]);
        (pattern, PatternValue::object(outer).wrapped(1, 0))
    }

    const TEXT: &str = r#"[{"a":[{"b":1},null,{"b":-23}],"c":[["x","y\""],[]],"d":{"é":[1]}},null,{"a":null,"c":[["z"]],"d":null},{"a":[],"c":[],"d":12}]"#;

    /// What comes of a text that arrives in pieces; each `until` counts from where its piece ends.
    fn in_pieces(text: &[u8], cuts: &[(usize, usize)], depth_max: u32) -> Option<usize> {
        let (pattern, value) = pattern();
        let mut conditions = Conditions::default();
        conditions.set(1);
        let mut unfinished = Unfinished::new(&pattern, 1, value, (3, depth_max));
        for (cut, margin) in cuts {
            let piece = &text[..*cut];
            match unfinished.go_on(piece, cut.saturating_sub(*margin), &conditions) {
                Advance::End(end) => return Some(end),
                Advance::Paused => assert!(unfinished.position() <= *cut),
                Advance::Stuck => {}
            }
        }
        match unfinished.go_on(text, usize::MAX, &conditions) {
            Advance::End(end) => Some(end),
            Advance::Paused => panic!("nothing is that late"),
            Advance::Stuck => None,
        }
    }
    fn at_once(text: &[u8], depth_max: u32) -> Option<usize> {
        let (pattern, value) = pattern();
        let mut conditions = Conditions::default();
        conditions.set(1);
        pattern.matches(text, 1, value, &conditions, (3, depth_max))
    }

    #[test]
    fn any_cuts_give_what_the_whole_text_gives() {
        let text = format!(" {TEXT},x");
        let text = text.as_bytes();
        assert_eq!(at_once(text, 128), Some(text.len() - 2));
        let mut paused_more_than_once = 0;
        for first in 0..text.len() {
            for second in first..text.len() {
                for margin in [0, 7, 60] {
                    let cuts = [(first, margin), (second, margin)];
                    assert_eq!(in_pieces(text, &cuts, 128), Some(text.len() - 2));
                    paused_more_than_once += usize::from(second > first + margin);
                }
            }
        }
        assert!(paused_more_than_once > 1000);
    }

    #[test]
    fn damage_is_found_wherever_the_cut_is() {
        let text = format!(" {TEXT},x");
        for at in 0..text.len() {
            for byte in [b'x', b'"', b',', b'}', b']', b'\\', b' ', 0x80, b'0'] {
                let mut damaged = text.clone().into_bytes();
                damaged[at] = byte;
                let expected = at_once(&damaged, 128);
                for cut in (0..damaged.len()).step_by(5) {
                    let cuts = [(cut, 9), ((cut + 30).min(damaged.len()), 9)];
                    assert_eq!(in_pieces(&damaged, &cuts, 128), expected, "{at} {cut}");
                }
            }
        }
    }

    #[test]
    fn depth_is_counted_from_where_it_began() {
        let text = format!(" {TEXT}");
        let text = text.as_bytes();
        for depth_max in 3..9 {
            let expected = at_once(text, depth_max);
            for cut in 0..text.len() {
                let cuts = [(cut, 20)];
                assert_eq!(in_pieces(text, &cuts, depth_max), expected);
            }
        }
        assert_eq!(
            (at_once(text, 6), at_once(text, 8)),
            (None, Some(text.len()))
        );
    }
}
