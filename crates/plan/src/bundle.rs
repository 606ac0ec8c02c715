//! Bundles: plans made ahead of time, in one file.
//!
//! A bundle knows its operations by their canonical form, byte for byte, and says of each plan which parts of the
//! schema (types and fields) it rests on. It can therefore outlive a schema: a plan is good as long as none of its
//! parts changed.
//!
//! What the bytes of a canonical form and the hashes of parts mean is the business of whoever makes them.

use crate::{
    binary::{DecodeError, Decoder, Encoder},
    encode::{read_plan, write_plan},
    ir::Plan,
};

const MAGIC: [u8; 4] = *b"OGVB";

/// Plans made ahead of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bundle {
    /// Version of the planner that made them.
    pub planner: Box<str>,
    /// Hash of the whole schema they were made for.
    pub schema: u128,
    /// Parts some plan rests on, each with the hash of its definition.
    pub parts: Vec<(Box<str>, u128)>,
    /// The plans.
    pub plans: Vec<BundledPlan>,
}

/// One plan of a bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct BundledPlan {
    /// The operation's canonical form: the key.
    pub key: Box<[u8]>,
    /// What the operation is called, for people.
    pub name: Box<str>,
    /// Parts the plan rests on, by index into [`Bundle::parts`].
    pub parts: Vec<u32>,
    /// The plan.
    pub plan: Plan,
}

impl Bundle {
    /// The bundle as bytes. Equal strings of all plans are stored once.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.string(&self.planner);
        out.hash(self.schema);
        out.number(self.parts.len() as u64);
        for (name, hash) in &self.parts {
            out.string(name);
            out.hash(*hash);
        }
        out.number(self.plans.len() as u64);
        for bundled in &self.plans {
            out.bytes(&bundled.key);
            out.string(&bundled.name);
            out.number(bundled.parts.len() as u64);
            for part in &bundled.parts {
                out.number((*part).into());
            }
            write_plan(&bundled.plan, &mut out);
        }
        out.seal(MAGIC)
    }

    /// The bundle in some bytes; every plan of it passes the verifier.
    pub fn decode(bytes: &[u8]) -> Result<Bundle, DecodeError> {
        let mut from = Decoder::open(bytes, MAGIC)?;
        let planner = from.string()?;
        let schema = from.hash()?;
        let parts = from.list(|from| Ok((from.string()?, from.hash()?)))?;
        let plans = from.list(|from| {
            Ok(BundledPlan {
                key: from.bytes()?,
                name: from.string()?,
                parts: from.list(|from| {
                    let part = from.u32()?;
                    let known = (part as usize) < parts.len();
                    known
                        .then_some(part)
                        .ok_or(DecodeError::Invalid("no such part"))
                })?,
                plan: read_plan(from)?,
            })
        })?;
        from.finish()?;
        Ok(Bundle {
            planner,
            schema,
            parts,
            plans,
        })
    }
}
