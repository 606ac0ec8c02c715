//! One fetch as several requests: because a subgraph takes only so many representations at a time, or because a request
//! of several members failed as a whole.
//!
//! What a part does not ask for has no representations in it; the gates of the text do the rest.

use std::num::NonZeroU32;

use bytes::Bytes;

use crate::{
    gather::{Gathered, GatheredLookup, Instance},
    store::Source,
};

impl Gathered {
    /// Number of members that could be asked on their own: the root fields, and every look-up.
    pub(crate) fn n_members(&self) -> usize {
        let live = self.lookups.iter().filter(|l| l.n_representations > 0);
        usize::from(self.root) + live.count()
    }

    fn empty(&self) -> Gathered {
        Gathered {
            root: false,
            lookups: self
                .lookups
                .iter()
                .map(|_| GatheredLookup::default())
                .collect(),
            text: Vec::new(),
            context: self.context.clone(),
            is_retry: self.is_retry,
            unasked: Vec::new(),
        }
    }

    /// One part for each group of values from above; what needs none goes with the first. One part in all if all that is
    /// looked up has the same values.
    pub(crate) fn split_by_context(mut self) -> Vec<Gathered> {
        let groups = self.lookups.iter().flat_map(|lookup| &lookup.contexts);
        let mut groups: Vec<Bytes> = groups.cloned().collect();
        groups.sort_unstable();
        groups.dedup();
        if groups.len() <= 1 {
            self.context = groups.pop().unwrap_or_default();
            return vec![self];
        }
        let of_group = |context: &Bytes| Gathered {
            context: context.clone(),
            ..self.empty()
        };
        let mut out: Vec<Gathered> = groups.iter().map(of_group).collect();
        out[0].root = self.root;
        for (at, lookup) in self.lookups.iter_mut().enumerate() {
            if lookup.contexts.is_empty() {
                let first = &mut out[0];
                lookup.move_text(&self.text, &mut first.text);
                first.lookups[at] = std::mem::take(lookup);
                continue;
            }
            let part_of = lookup
                .contexts
                .iter()
                .map(|context| groups.binary_search(context));
            let part_of: Vec<usize> = part_of.map(Result::unwrap_or_default).collect();
            let mut members: Vec<Vec<u32>> = vec![Vec::new(); groups.len()];
            for (representation, group) in (0..).zip(&lookup.groups) {
                let part = group.map_or(0, |group| part_of[group as usize]);
                members[part].push(representation);
            }
            for (part, members) in out.iter_mut().zip(members) {
                if !members.is_empty() {
                    part.lookups[at] = lookup.pick(&members, (&self.text, &mut part.text));
                }
            }
        }
        out
    }

    /// Parts of at most `most` representations each, about equally many in each; root fields go with the first. There are
    /// never more than [`Source::PARTS_MAX`] parts: they grow instead.
    pub(crate) fn split(self, most: NonZeroU32) -> Vec<Gathered> {
        let total = self.n_representations();
        let parts = total.div_ceil(u64::from(most.get()));
        // One number in two is left for parts that have to be sent again.
        let parts = parts.clamp(1, Source::PARTS_MAX as u64 / 4);
        let size = total.div_ceil(parts) as u32;
        let mut out = vec![Gathered {
            root: self.root,
            ..self.empty()
        }];
        let mut room = size;
        for (at, lookup) in self.lookups.iter().enumerate() {
            let mut start = 0;
            while start < lookup.n_representations {
                if room == 0 {
                    out.push(self.empty());
                    room = size;
                }
                let end = lookup.n_representations.min(start + room);
                if let Some(part) = out.last_mut() {
                    let texts = (&*self.text, &mut part.text);
                    part.lookups[at] = lookup.part(start, end, texts);
                }
                room -= end - start;
                start = end;
            }
        }
        out
    }

    /// Every member on its own.
    pub(crate) fn split_for_retry(mut self) -> Vec<Gathered> {
        self.is_retry = true;
        let mut out = Vec::new();
        if self.root {
            out.push(Gathered {
                root: true,
                ..self.empty()
            });
        }
        let mut lookups = std::mem::take(&mut self.lookups);
        for at in 0..lookups.len() {
            if lookups[at].n_representations == 0 {
                continue;
            }
            let mut part = Gathered {
                lookups: lookups.iter().map(|_| GatheredLookup::default()).collect(),
                ..self.empty()
            };
            part.lookups[at] = std::mem::take(&mut lookups[at]);
            part.lookups[at].move_text(&self.text, &mut part.text);
            out.push(part);
        }
        out
    }
}

impl GatheredLookup {
    /// Goes on with its representations in another text.
    fn move_text(&mut self, text: &[u8], to: &mut Vec<u8>) {
        let (before, now) = (self.text.start, to.len());
        to.extend_from_slice(&text[self.text.clone()]);
        self.text = now..to.len();
        for (start, end) in self.ranges.iter_mut() {
            (*start, *end) = (*start - before + now, *end - before + now);
        }
    }

    /// The representations from `start` up to `end`, exclusive, with everybody who waits for them. Their text goes from
    /// one to another.
    fn part(&self, start: u32, end: u32, (text, out): (&[u8], &mut Vec<u8>)) -> GatheredLookup {
        let (first, last) = (start as usize, end as usize);
        let from = self.ranges[first].0;
        let to = self.ranges[last - 1].1;
        let begin = out.len();
        out.extend_from_slice(&text[from..to]);
        let waiting = self.instances.iter();
        GatheredLookup {
            text: begin..out.len(),
            ranges: self.ranges[first..last]
                .iter()
                .map(|(a, b)| (begin + a - from, begin + b - from))
                .collect(),
            n_representations: end - start,
            instances: waiting
                .filter(|instance| (start..end).contains(&instance.representation))
                .map(|instance| Instance {
                    representation: instance.representation - start,
                    ..*instance
                })
                .collect(),
            tickets: if self.tickets.is_empty() {
                Vec::new()
            } else {
                self.tickets[first..last].to_vec()
            },
            groups: Vec::new(),
            contexts: Vec::new(),
            reused: Vec::new(),
            held: Vec::new(),
        }
    }

    /// Some of the representations, in order, with everybody who waits for them. Their text goes from one to another.
    fn pick(&self, members: &[u32], (text, to): (&[u8], &mut Vec<u8>)) -> GatheredLookup {
        let begin = to.len();
        let mut out = GatheredLookup {
            n_representations: members.len() as u32,
            ..GatheredLookup::default()
        };
        for (new, old) in members.iter().enumerate() {
            let (start, end) = self.ranges[*old as usize];
            if new > 0 {
                to.push(b',');
            }
            let from = to.len();
            to.extend_from_slice(&text[start..end]);
            out.ranges.push((from, to.len()));
            let waiting = self.waiting_for(*old).iter();
            out.instances.extend(waiting.map(|instance| Instance {
                representation: new as u32,
                ..*instance
            }));
            out.tickets.extend(self.tickets.get(*old as usize));
        }
        out.text = begin..to.len();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_share_the_values_from_above() {
        let gathered = Gathered {
            lookups: vec![GatheredLookup {
                text: 0..5,
                ranges: [(0, 2), (3, 5)].into_iter().collect(),
                n_representations: 2,
                ..GatheredLookup::default()
            }],
            text: b"{},{}".to_vec(),
            context: Bytes::from(b",\"shop\":1".to_vec()),
            ..Gathered::default()
        };
        let context = gathered.context.as_ptr();
        let parts = gathered.split(NonZeroU32::MIN);
        assert_eq!(parts.len(), 2);
        assert!(parts.iter().all(|part| part.context.as_ptr() == context));
    }
}
