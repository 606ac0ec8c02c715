//! Reading values that look exactly as expected, in one pass: the fast lane of the scanner.
//!
//! A [`Pattern`] says which keys an object has, in which order, how deep lists nest, which values may be null, and
//! what kind each scalar is. A text that is precisely so, without white space, is accepted at the speed of comparing
//! keys and finding the ends of strings, and can then be used as it stands. Anything else is not an error: matching
//! just fails, and the caller reads the value with a [`Scanner`](crate::Scanner), which knows why.
//!
//! Acceptance implies validity: grammar, UTF-8, escapes, depth and number syntax are checked as the scanner does.
//!
//! Invariants: an explicit stack, bounded by the depth limit; nothing is allocated but that stack, which can be used again
//! ([`Open`]).

use crate::{
    cursor::Cursor,
    lanes::{self, BASELINE, Job, KEY_BLOCK, Lanes},
};

/// What scalars look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PatternScalar {
    /// A whole number of 32 bits.
    Int,
    /// Any number.
    Number,
    /// A string.
    String,
    /// `true` or `false`.
    Boolean,
    /// A string or a number without fraction and exponent.
    StringOrInteger,
    /// A string of the set with this index ([`Pattern::add_set`]), written without escapes.
    OneOf(u32),
    /// Any value, white space inside it included.
    Any,
}

/// A value of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PatternValue {
    kind: Kind,
    lists: u8,
    non_null: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Scalar(PatternScalar),
    /// Index into `Pattern::objects`.
    Object(u32),
}

impl PatternValue {
    /// A scalar.
    pub fn scalar(scalar: PatternScalar) -> Self {
        Self::of(Kind::Scalar(scalar))
    }
    /// An object, by the index [`Pattern::add_object`] gave.
    pub fn object(object: u32) -> Self {
        Self::of(Kind::Object(object))
    }
    fn of(kind: Kind) -> Self {
        PatternValue {
            kind,
            lists: 0,
            non_null: 0,
        }
    }
    /// With `lists` lists around it (at most 15); bit `n` of `non_null` forbids null at layer `n`, where layer 0 is
    /// the value inside all lists.
    #[must_use]
    pub fn wrapped(self, lists: u8, non_null: u16) -> Self {
        PatternValue {
            lists: lists.min(15),
            non_null,
            ..self
        }
    }
    /// The scalar, and whether it may not be null, if it is one without lists around it.
    #[inline(always)]
    pub fn as_scalar(self) -> Option<(PatternScalar, bool)> {
        match self.kind {
            Kind::Scalar(scalar) if self.lists == 0 => Some((scalar, self.is_non_null(0))),
            _ => None,
        }
    }
    /// The lists around it.
    pub fn lists(self) -> u8 {
        self.lists
    }
    /// The items of this list.
    #[must_use]
    pub fn item(self) -> Self {
        PatternValue {
            lists: self.lists.saturating_sub(1),
            ..self
        }
    }
    #[inline(always)]
    fn is_non_null(self, layer: u8) -> bool {
        self.non_null & (1 << layer) != 0
    }
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PatternField {
    /// `,"key":`, the comma being left out for the first member.
    text: Box<[u8]>,
    /// The first bytes of it, and which of them count.
    block: [u8; KEY_BLOCK],
    mask: u32,
    condition: u32,
    value: PatternValue,
}

impl PatternField {
    /// A member that is there if and only if condition `condition` holds; condition 0 always does. `key` must need no
    /// escapes.
    pub fn new(key: &str, condition: u32, value: PatternValue) -> Self {
        let text = [b",\"".as_slice(), key.as_bytes(), b"\":"].concat();
        let mut block = [0; KEY_BLOCK];
        let len = text.len().min(KEY_BLOCK);
        block[..len].copy_from_slice(&text[..len]);
        PatternField {
            text: text.into(),
            block,
            mask: if len == KEY_BLOCK {
                u32::MAX
            } else {
                (1 << len) - 1
            },
            condition,
            value,
        }
    }
}

/// Which conditions hold, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    words: Vec<u64>,
}

impl Conditions {
    /// Says that a condition holds. Condition 0 always does.
    pub fn set(&mut self, condition: u32) {
        let word = condition as usize / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (condition % 64);
    }
    /// Whether a condition holds.
    #[inline(always)]
    pub fn hold(&self, condition: u32) -> bool {
        condition == 0
            || self
                .words
                .get(condition as usize / 64)
                .is_some_and(|word| word & (1 << (condition % 64)) != 0)
    }
}

/// What texts are compared with: any number of objects that name each other by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    objects: Vec<Box<[PatternField]>>,
    sets: Vec<Box<[Box<str>]>>,
}

impl Pattern {
    /// Adds an object; values name it by the returned index.
    pub fn add_object(&mut self, fields: Vec<PatternField>) -> u32 {
        self.objects.push(fields.into());
        self.objects.len() as u32 - 1
    }
    /// Adds a set of strings.
    pub fn add_set(&mut self, values: Vec<Box<str>>) -> u32 {
        self.sets.push(values.into());
        self.sets.len() as u32 - 1
    }
    /// Gives up spare capacity.
    pub fn shrink_to_fit(&mut self) {
        self.objects.shrink_to_fit();
        self.sets.shrink_to_fit();
    }
    /// Bytes on the heap, the value itself not counted; O(n).
    pub fn heap_bytes(&self) -> usize {
        let objects = self.objects.iter().map(|fields| {
            size_of_val(&**fields) + fields.iter().map(|field| field.text.len()).sum::<usize>()
        });
        let sets = self.sets.iter().map(|values| {
            size_of_val(&**values) + values.iter().map(|value| value.len()).sum::<usize>()
        });
        self.objects.capacity() * size_of::<Box<[PatternField]>>()
            + self.sets.capacity() * size_of::<Box<[Box<str>]>>()
            + objects.chain(sets).sum::<usize>()
    }

    /// The end of the value at `at`, if it is as expected. `depth` says how many containers are open around it and how
    /// many may be.
    pub fn matches(
        &self,
        text: &[u8],
        at: usize,
        value: PatternValue,
        conditions: &Conditions,
        depth: (u32, u32),
    ) -> Option<usize> {
        self.matches_with(&mut Open::default(), text, at, value, conditions, depth)
    }
    /// The same with a stack that was used before, for many small values.
    pub fn matches_with<'p>(
        &'p self,
        open: &mut Open<'p>,
        text: &[u8],
        at: usize,
        value: PatternValue,
        conditions: &Conditions,
        depth: (u32, u32),
    ) -> Option<usize> {
        let depth_left = depth.1.saturating_sub(depth.0);
        let job = Match {
            pattern: self,
            text,
            begin: Begin::new(at, value),
            conditions,
            depth_left,
        };
        // One scalar is not worth a choice.
        if let (0, Kind::Scalar(scalar)) = (value.lists, value.kind)
            && scalar != PatternScalar::Any
        {
            return job.one_scalar(scalar);
        }
        open.0.clear();
        let (open, tally) = (&mut open.0, &mut ());
        lanes::run(Whole { job, open, tally })
    }
    /// The same; somebody is told what the value consists of.
    pub fn tally<'p, T: Tally>(
        &'p self,
        (open, tally): (&mut Open<'p>, &mut T),
        text: &[u8],
        at: usize,
        value: PatternValue,
        conditions: &Conditions,
        depth: (u32, u32),
    ) -> Option<usize> {
        let job = Match {
            pattern: self,
            text,
            begin: Begin::new(at, value),
            conditions,
            depth_left: depth.1.saturating_sub(depth.0),
        };
        open.0.clear();
        let open = &mut open.0;
        lanes::run(Whole { job, open, tally })
    }

    /// Reads a scalar that is not null and begins with `byte`; `None`, and anything may have been read, if it is not as
    /// expected. `depth_left` containers may be opened.
    #[inline(always)]
    pub fn scalar<L: Lanes>(
        &self,
        cursor: &mut Cursor<'_, L>,
        scalar: PatternScalar,
        byte: u8,
        depth_left: u32,
    ) -> Option<()> {
        match (scalar, byte) {
            (PatternScalar::String | PatternScalar::StringOrInteger, b'"') => {
                cursor.at += 1;
                cursor.string_rest().ok()?;
            }
            (PatternScalar::Int, b'-' | b'0'..=b'9') => {
                let start = cursor.at;
                if !cursor.number().ok()? {
                    return None;
                }
                // Nine digits always fit.
                if cursor.at - start > 9 {
                    let digits = cursor.text.get(start..cursor.at)?;
                    std::str::from_utf8(digits).ok()?.parse::<i32>().ok()?;
                }
            }
            (PatternScalar::StringOrInteger, b'-' | b'0'..=b'9') => {
                if !cursor.number().ok()? {
                    return None;
                }
            }
            (PatternScalar::Number, b'-' | b'0'..=b'9') => {
                cursor.number().ok()?;
            }
            (PatternScalar::Boolean, b't') => cursor.literal(b"true").ok()?,
            (PatternScalar::Boolean, b'f') => cursor.literal(b"false").ok()?,
            (PatternScalar::OneOf(set), b'"') => {
                cursor.at += 1;
                let start = cursor.at;
                if cursor.string_rest().ok()? {
                    return None;
                }
                let name = cursor.text.get(start..cursor.at - 1)?;
                let set = self.sets.get(set as usize)?;
                if !set.iter().any(|known| known.as_bytes() == name) {
                    return None;
                }
            }
            // The caller has dealt with null.
            (PatternScalar::Any, byte) if !matches!(byte, b'n' | b' ' | b'\n' | b'\t' | b'\r') => {
                cursor.skip_value(0, depth_left).ok()?;
            }
            _ => return None,
        }
        Some(())
    }
}

/// Is told what a value that is as expected consists of, lists and nulls left out. What it was told of a value that is not
/// is of no use.
pub trait Tally {
    /// An object begins.
    fn object(&mut self);
    /// A member of the innermost object begins; `left` fields of its pattern follow that one.
    fn member(&mut self, left: usize);
    /// A scalar that is not null.
    fn scalar(&mut self);
    /// The innermost object is complete.
    fn close(&mut self);
}

/// Nobody is told.
impl Tally for () {
    #[inline(always)]
    fn object(&mut self) {}
    #[inline(always)]
    fn member(&mut self, _: usize) {}
    #[inline(always)]
    fn scalar(&mut self) {}
    #[inline(always)]
    fn close(&mut self) {}
}

pub(crate) struct Match<'p, 't> {
    pub(crate) pattern: &'p Pattern,
    pub(crate) text: &'t [u8],
    pub(crate) begin: Begin,
    pub(crate) conditions: &'t Conditions,
    /// Containers that may be opened, those counted that are open when it begins.
    pub(crate) depth_left: u32,
}

/// Where a value begins, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begin {
    pub(crate) at: usize,
    value: PatternValue,
    /// Lists around what begins here, of those the value has.
    layer: u8,
}

impl Begin {
    fn at(at: usize, value: PatternValue, layer: u8) -> Self {
        Begin { at, value, layer }
    }
    pub(crate) fn new(at: usize, value: PatternValue) -> Self {
        let layer = value.lists;
        Begin { at, value, layer }
    }
}

/// An open container.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Frame<'p> {
    Object { rest: &'p [PatternField] },
    List { value: PatternValue, layer: u8 },
}

/// Room for the containers that are open in a text; nothing of a text stays in it.
#[derive(Clone, Debug, Default)]
pub struct Open<'p>(Vec<Frame<'p>>);

/// A match up to the end of its value.
struct Whole<'j, 'p, 't, T> {
    job: Match<'p, 't>,
    open: &'j mut Vec<Frame<'p>>,
    tally: &'j mut T,
}

/// How far a text is as expected.
pub(crate) enum Walked {
    /// The value ends here.
    End(usize),
    /// An item is next.
    Paused(Begin),
}

impl<T: Tally> Job for Whole<'_, '_, '_, T> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Option<usize> {
        let walked = self
            .job
            .walk::<L, T, false>(lanes, (self.open, self.tally), usize::MAX);
        match walked? {
            Walked::End(end) => Some(end),
            Walked::Paused(_) => None,
        }
    }
}

impl<'p, 't> Match<'p, 't> {
    /// Goes on with `open` containers around where it begins. If it `PAUSES`, it does so before the first item of a list
    /// at `until` or behind it.
    #[inline(always)]
    pub(crate) fn walk<L: Lanes, T: Tally, const PAUSES: bool>(
        &self,
        lanes: L,
        (open, tally): (&mut Vec<Frame<'p>>, &mut T),
        until: usize,
    ) -> Option<Walked> {
        let Begin {
            at,
            mut value,
            mut layer,
        } = self.begin;
        let mut cursor = Cursor {
            text: self.text,
            at,
            lanes,
        };
        loop {
            // A value of `layer` begins here.
            let byte = *cursor.text.get(cursor.at)?;
            if byte == b'n' && !value.is_non_null(layer) {
                cursor.literal(b"null").ok()?;
            } else if layer > 0 {
                if byte != b'[' || open.len() as u32 >= self.depth_left {
                    return None;
                }
                cursor.at += 1;
                if cursor.text.get(cursor.at) == Some(&b']') {
                    cursor.at += 1;
                } else {
                    layer -= 1;
                    if layer == 0
                        && let Kind::Scalar(scalar) = value.kind
                    {
                        let left = self.depth_left - open.len() as u32 - 1;
                        self.scalars((&mut cursor, tally), value, scalar, left)?;
                    } else {
                        open.push(Frame::List { value, layer });
                        continue;
                    }
                }
            } else {
                match value.kind {
                    Kind::Scalar(scalar) => {
                        let left = self.depth_left - open.len() as u32;
                        self.scalar((&mut cursor, tally), scalar, byte, left)?;
                    }
                    Kind::Object(object) => {
                        if byte != b'{' {
                            return None;
                        }
                        let means = (&mut cursor, &mut *tally);
                        if let Some(first) = self.begin_object(means, object, open)? {
                            value = first;
                            layer = value.lists;
                            continue;
                        }
                    }
                }
            }
            // A value is complete.
            loop {
                let Some(frame) = open.last_mut() else {
                    return Some(Walked::End(cursor.at));
                };
                match frame {
                    Frame::Object { rest } => {
                        if let Some(field) = self.next_field(rest) {
                            self.key(&mut cursor, field)?;
                            tally.member(rest.len());
                            value = field.value;
                            layer = value.lists;
                            break;
                        }
                        if cursor.text.get(cursor.at) != Some(&b'}') {
                            return None;
                        }
                        tally.close();
                    }
                    Frame::List {
                        value: item,
                        layer: below,
                    } => match cursor.text.get(cursor.at) {
                        Some(b',') => {
                            cursor.at += 1;
                            value = *item;
                            layer = *below;
                            if PAUSES && cursor.at >= until {
                                return Some(Walked::Paused(Begin::at(cursor.at, value, layer)));
                            }
                            break;
                        }
                        Some(b']') => {}
                        _ => return None,
                    },
                }
                cursor.at += 1;
                open.pop();
            }
        }
    }

    /// Reads the opening bracket of an object and its first key, and gives what follows the key. Of an object without
    /// members it reads the closing bracket too.
    #[inline(always)]
    fn begin_object<L: Lanes, T: Tally>(
        &self,
        (cursor, tally): (&mut Cursor<'t, L>, &mut T),
        object: u32,
        open: &mut Vec<Frame<'p>>,
    ) -> Option<Option<PatternValue>> {
        if open.len() as u32 >= self.depth_left {
            return None;
        }
        cursor.at += 1;
        let mut rest = &**self.pattern.objects.get(object as usize)?;
        tally.object();
        let Some(field) = self.next_field(&mut rest) else {
            cursor.expect(b'}').ok()?;
            tally.close();
            return Some(None);
        };
        self.first_key(cursor, field)?;
        tally.member(rest.len());
        open.push(Frame::Object { rest });
        Some(Some(field.value))
    }

    fn one_scalar(&self, scalar: PatternScalar) -> Option<usize> {
        let mut cursor = Cursor {
            text: self.text,
            at: self.begin.at,
            lanes: BASELINE,
        };
        let byte = *cursor.text.get(cursor.at)?;
        if byte == b'n' && !self.begin.value.is_non_null(0) {
            cursor.literal(b"null").ok()?;
        } else {
            self.scalar((&mut cursor, &mut ()), scalar, byte, 0)?;
        }
        Some(cursor.at)
    }

    /// Takes the next member that is expected off `rest`.
    #[inline(always)]
    fn next_field<'f>(&self, rest: &mut &'f [PatternField]) -> Option<&'f PatternField> {
        loop {
            let (field, others) = rest.split_first()?;
            *rest = others;
            if self.conditions.hold(field.condition) {
                return Some(field);
            }
        }
    }

    #[inline(always)]
    fn key<L: Lanes>(&self, cursor: &mut Cursor<'t, L>, field: &PatternField) -> Option<()> {
        let len = field.text.len();
        let block = cursor
            .lanes
            .matches(cursor.text, cursor.at, &field.block, field.mask);
        let equal = match block {
            Some(equal) if len <= KEY_BLOCK => equal,
            Some(false) => false,
            _ => cursor.text.get(cursor.at..)?.starts_with(&field.text),
        };
        if !equal {
            return None;
        }
        cursor.at += len;
        Some(())
    }
    #[inline(always)]
    fn first_key<L: Lanes>(&self, cursor: &mut Cursor<'t, L>, field: &PatternField) -> Option<()> {
        // The bracket stands where the comma would. `cursor.at` is behind it, so this cannot overflow.
        let before = cursor.at - 1;
        let len = field.text.len();
        let block = cursor
            .lanes
            .matches(cursor.text, before, &field.block, field.mask & !1);
        let equal = match block {
            Some(equal) if len <= KEY_BLOCK => equal,
            Some(false) => false,
            _ => cursor.text.get(cursor.at..)?.starts_with(&field.text[1..]),
        };
        if !equal {
            return None;
        }
        cursor.at = before + len;
        Some(())
    }

    /// The items of a list, and its closing bracket.
    #[inline(always)]
    fn scalars<L: Lanes, T: Tally>(
        &self,
        (cursor, tally): (&mut Cursor<'t, L>, &mut T),
        value: PatternValue,
        scalar: PatternScalar,
        depth_left: u32,
    ) -> Option<()> {
        loop {
            let byte = *cursor.text.get(cursor.at)?;
            if byte == b'n' && !value.is_non_null(0) {
                cursor.literal(b"null").ok()?;
            } else {
                self.scalar((cursor, tally), scalar, byte, depth_left)?;
            }
            let after = *cursor.text.get(cursor.at)?;
            cursor.at += 1;
            match after {
                b',' => {}
                b']' => return Some(()),
                _ => return None,
            }
        }
    }

    #[inline(always)]
    fn scalar<L: Lanes, T: Tally>(
        &self,
        (cursor, tally): (&mut Cursor<'t, L>, &mut T),
        scalar: PatternScalar,
        byte: u8,
        depth_left: u32,
    ) -> Option<()> {
        tally.scalar();
        self.pattern.scalar(cursor, scalar, byte, depth_left)
    }
}
