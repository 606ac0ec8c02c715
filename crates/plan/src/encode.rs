//! Plans as bytes, for bundles: compact, versioned, and safe to read whatever the bytes are.
//!
//! [`encode`] writes, [`decode`] reads and then runs the [`verify`](crate::verify()) checks, because an executor trusts
//! its plan. The header says which planner made the plan for which schema.
//!
//! Invariant: `decode(encode(plan)) == plan` for every plan that passes the verifier. Reading destructures every
//! struct of [`crate::ir`], so a new field cannot be forgotten here; it needs a new
//! [`FORMAT_VERSION`](crate::binary::FORMAT_VERSION).

use ogive_base::{BitSet, IdVec};

pub use crate::binary::DecodeError;
use crate::{
    binary::{Decoder, Encoder},
    deferral::{Deferral, DeferredGroup, DeferredOutput, StreamOutput},
    derived::DerivedCell,
    ids::*,
    ir::*,
    representation::{Member, Representation},
    requirement::Requirement,
    verify,
};

const MAGIC: [u8; 4] = *b"OGVP";

/// Deepest nesting of representation members that is read.
const MEMBERS_DEPTH_MAX: u32 = 64;

/// Where a plan comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version of the planner.
    pub planner: Box<str>,
    /// Hash of what the plan knows of the schema.
    pub schema: u128,
}

type Result<T> = std::result::Result<T, DecodeError>;

/// A plan as bytes.
pub fn encode(plan: &Plan, header: &Header) -> Vec<u8> {
    let mut out = Encoder::default();
    out.string(&header.planner);
    out.hash(header.schema);
    write_plan(plan, &mut out);
    out.seal(MAGIC)
}

/// The plan in some bytes.
pub fn decode(bytes: &[u8]) -> Result<(Header, Plan)> {
    let mut from = Decoder::open(bytes, MAGIC)?;
    let header = Header {
        planner: from.string()?,
        schema: from.hash()?,
    };
    let plan = read_plan(&mut from)?;
    from.finish()?;
    Ok((header, plan))
}

/// Reads one plan and checks it.
pub(crate) fn read_plan(from: &mut Decoder<'_>) -> Result<Plan> {
    let plan = read_unchecked(from)?;
    verify(&plan).map_err(|problems| DecodeError::Unsound(problems.join("; ")))?;
    Ok(plan)
}

pub(crate) fn write_plan(plan: &Plan, out: &mut Encoder) {
    let Plan {
        kind,
        subgraphs,
        types,
        enums,
        conditions,
        variables,
        requirements,
        layouts,
        shapes,
        fetches,
        locals,
        deferral,
        derived: _,
    } = plan;
    out.byte(*kind as u8);
    strings(subgraphs, out);
    strings(types.as_slice(), out);
    list(enums.as_slice(), out, |values, out| strings(values, out));
    list(conditions.as_slice(), out, |terms, out| {
        list(terms, out, |term, out| {
            list(term, out, |(variable, wanted), out| {
                out.number(u64::from(*variable) << 1 | u64::from(*wanted));
            });
        });
    });
    strings(variables, out);
    list(requirements, out, |requirement, out| {
        let Requirement {
            authenticated,
            scopes,
            policies,
            mask,
        } = requirement;
        out.bool(*authenticated);
        for part in [scopes, policies] {
            out.bool(part.is_some());
            if let Some(part) = part {
                list(part, out, |names, out| strings(names, out));
            }
        }
        out.bool(mask.is_some());
        if let Some(mask) = mask {
            out.string(mask);
        }
    });
    list(layouts.as_slice(), out, write_layout);
    list(shapes.as_slice(), out, write_shape);
    list(fetches.as_slice(), out, write_fetch);
    out.number((*locals).into());
    out.bool(deferral.is_some());
    if let Some(deferral) = deferral {
        write_deferral(deferral, out);
    }
}

fn write_deferral(deferral: &Deferral, out: &mut Encoder) {
    let Deferral {
        groups,
        parts,
        fetches,
        outputs,
        streams,
    } = deferral;
    list(groups, out, |group, out| {
        let DeferredGroup {
            label,
            parent,
            layout,
            variable,
            cond,
        } = group;
        out.optional_string(label.as_deref());
        optional_number(*parent, out);
        out.number(layout.0.into());
        optional_number(*variable, out);
        out.number(cond.0.into());
    });
    list(parts, out, |part, out| numbers(part.iter().copied(), out));
    numbers(fetches.iter().copied(), out);
    list(outputs, out, |output, out| {
        let DeferredOutput {
            layout,
            entry,
            part,
            group,
        } = output;
        for number in [layout.0, *entry, *part] {
            out.number(number.into());
        }
        optional_number(*group, out);
    });
    list(streams, out, |stream, out| {
        let StreamOutput {
            layout,
            entry,
            label,
            initial_count,
            initial_variable,
            variable,
        } = stream;
        for number in [layout.0, *entry, *initial_count] {
            out.number(number.into());
        }
        out.optional_string(label.as_deref());
        optional_number(*initial_variable, out);
        optional_number(*variable, out);
    });
}

fn read_deferral(from: &mut Decoder<'_>) -> Result<Box<Deferral>> {
    Ok(Box::new(Deferral {
        groups: from.list(|from| {
            Ok(DeferredGroup {
                label: from.optional_string()?,
                parent: read_optional_number(from)?,
                layout: LayoutId(from.u32()?),
                variable: read_optional_number(from)?,
                cond: Cond(from.u32()?),
            })
        })?,
        parts: from.list(|from| from.list(Decoder::u32))?,
        fetches: from.list(Decoder::u32)?,
        outputs: from.list(|from| {
            Ok(DeferredOutput {
                layout: LayoutId(from.u32()?),
                entry: from.u32()?,
                part: from.u32()?,
                group: read_optional_number(from)?,
            })
        })?,
        streams: from.list(|from| {
            Ok(StreamOutput {
                layout: LayoutId(from.u32()?),
                entry: from.u32()?,
                initial_count: from.u32()?,
                label: from.optional_string()?,
                initial_variable: read_optional_number(from)?,
                variable: read_optional_number(from)?,
            })
        })?,
    }))
}

fn read_unchecked(from: &mut Decoder<'_>) -> Result<Plan> {
    let kind = read_kind(from)?;
    let subgraphs = from.list(Decoder::string)?;
    let types: IdVec<RuntimeType, Box<str>> = IdVec::from_vec(from.list(Decoder::string)?);
    let enums = IdVec::from_vec(from.list(|from| from.list(Decoder::string))?);
    let conditions = from.list(|from| {
        from.list(|from| {
            from.list(|from| {
                let literal = from.number()?;
                let variable = u32::try_from(literal >> 1)
                    .map_err(|_| DecodeError::Invalid("a condition's variable"))?;
                Ok((variable, literal & 1 == 1))
            })
        })
    })?;
    let variables = from.list(Decoder::string)?;
    let names = |from: &mut Decoder<'_>| -> Result<Option<Vec<Vec<Box<str>>>>> {
        from.bool()?
            .then(|| from.list(|from| from.list(Decoder::string)))
            .transpose()
    };
    let requirements = from.list(|from| {
        Ok(Requirement {
            authenticated: from.bool()?,
            scopes: names(from)?,
            policies: names(from)?,
            mask: from.bool()?.then(|| from.string()).transpose()?,
        })
    })?;
    let mut read = Read {
        from,
        types: types.len() as u32,
    };
    Ok(Plan {
        kind,
        subgraphs,
        enums,
        conditions: IdVec::from_vec(conditions),
        variables,
        requirements,
        layouts: IdVec::from_vec(read.list(Read::layout)?),
        shapes: IdVec::from_vec(read.list(Read::shape)?),
        fetches: IdVec::from_vec(read.list(Read::fetch)?),
        locals: read.from.u32()?,
        deferral: if read.from.bool()? {
            Some(read_deferral(read.from)?)
        } else {
            None
        },
        derived: DerivedCell::default(),
        types,
    })
}

fn list<T>(items: &[T], out: &mut Encoder, mut one: impl FnMut(&T, &mut Encoder)) {
    out.number(items.len() as u64);
    for item in items {
        one(item, out);
    }
}

fn strings(items: &[Box<str>], out: &mut Encoder) {
    list(items, out, |text, out| out.string(text));
}

fn set(types: &BitSet, out: &mut Encoder) {
    out.number(types.len() as u64);
    let mut next = 0;
    for ty in types.iter() {
        out.number(u64::from(ty - next));
        next = ty + 1;
    }
}

fn optional_set(types: Option<&BitSet>, out: &mut Encoder) {
    out.bool(types.is_some());
    if let Some(types) = types {
        set(types, out);
    }
}

fn numbers(items: impl ExactSizeIterator<Item = u32>, out: &mut Encoder) {
    out.number(items.len() as u64);
    items.for_each(|number| out.number(number.into()));
}

/// `None` is 0.
fn optional_number(number: Option<u32>, out: &mut Encoder) {
    out.number(number.map_or(0, |number| 1 + u64::from(number)));
}
fn read_optional_number(from: &mut Decoder<'_>) -> Result<Option<u32>> {
    match from.number()? {
        0 => Ok(None),
        number => u32::try_from(number - 1)
            .map(Some)
            .map_err(|_| DecodeError::Invalid("a number is too large")),
    }
}

/// `"name":`, which nearly always is the JSON of a text at hand.
fn key_json(json: &[u8], text: &str, out: &mut Encoder) {
    let usual = *json == *usual_key_json(text);
    out.bool(usual);
    if !usual {
        out.bytes(json);
    }
}

fn usual_key_json(text: &str) -> Vec<u8> {
    let mut json = Vec::with_capacity(text.len() + 3);
    ogive_json::write_string(&mut json, text);
    json.push(b':');
    json
}

fn write_layout(layout: &Layout, out: &mut Encoder) {
    let Layout {
        parent,
        types,
        slots,
        output,
        restricted,
    } = layout;
    out.bool(parent.is_some());
    if let Some((layout, slot)) = parent {
        out.number(layout.0.into());
        out.number((*slot).into());
    }
    set(types, out);
    list(slots, out, |slot, out| {
        let Slot {
            name,
            client_key,
            lists,
            child,
            value,
        } = slot;
        out.string(name);
        out.optional_string(client_key.as_deref());
        out.byte(*lists);
        optional_number(child.map(|child| child.0), out);
        out.number((*value).into());
    });
    list(output, out, write_out_field);
    list(restricted, out, |restricted, out| {
        let RestrictedTypes { types, granted } = restricted;
        set(types, out);
        out.number(granted.0.into());
    });
}

fn write_out_field(field: &OutField, out: &mut Encoder) {
    let OutField {
        key_json: json,
        key,
        source,
        types,
        cond,
        granted,
        repeated,
        wrapping,
        coordinate,
    } = field;
    out.string(key);
    key_json(json, key, out);
    match source {
        OutSource::Leaf(slot, kind) => {
            let (tag, of) = match kind {
                LeafKind::Int => (0, None),
                LeafKind::Float => (1, None),
                LeafKind::String => (2, None),
                LeafKind::Boolean => (3, None),
                LeafKind::Id => (4, None),
                LeafKind::Enum(of) => (5, Some(of.0)),
                LeafKind::Any => (6, None),
            };
            out.byte(tag);
            if let Some(of) = of {
                out.number(of.into());
            }
            out.number((*slot).into());
        }
        OutSource::Object(slot) => {
            out.byte(7);
            out.number((*slot).into());
        }
        OutSource::Typename => out.byte(8),
        OutSource::Local(local) => {
            out.byte(9);
            out.number((*local).into());
        }
        OutSource::Null => out.byte(10),
    }
    optional_set(types.as_ref(), out);
    out.number(cond.0.into());
    out.number(granted.0.into());
    out.bool(*repeated);
    out.byte(wrapping.lists());
    let non_null = (0..=wrapping.lists()).filter(|layer| wrapping.layer_is_non_null(*layer));
    out.number(non_null.fold(0, |bits, layer| bits | 1 << layer));
    out.string(coordinate);
}

fn write_shape(shape: &ObjectShape, out: &mut Encoder) {
    let ObjectShape {
        layout,
        typename_key,
        interface_objects,
        fields,
    } = shape;
    out.number(layout.0.into());
    out.optional_string(typename_key.as_deref());
    strings(interface_objects, out);
    list(fields, out, |field, out| {
        let ShapeField {
            key,
            slot,
            types,
            untyped,
            shape,
        } = field;
        out.string(key);
        out.number((*slot).into());
        optional_set(types.as_ref(), out);
        out.bool(*untyped);
        optional_number(shape.map(|shape| shape.0), out);
    });
}

fn write_fetch(fetch: &Fetch, out: &mut Encoder) {
    let Fetch {
        subgraph,
        wave,
        dependencies,
        successors,
        kind,
        segments,
        variables,
        root,
        lookups,
    } = fetch;
    out.number((*subgraph).into());
    out.number((*wave).into());
    for fetches in [dependencies, successors] {
        numbers(fetches.iter().map(|id| id.0), out);
    }
    out.byte(*kind as u8);
    list(segments, out, |segment, out| {
        let Segment { text, gates } = segment;
        out.string(text);
        write_gates(gates, out);
    });
    list(variables, out, |used, out| {
        let VariableUse { variable, gates } = used;
        out.number((*variable).into());
        write_gates(gates, out);
    });
    out.bool(root.is_some());
    if let Some(RootPart { cond, shape }) = root {
        out.number(cond.0.into());
        out.number(shape.0.into());
    }
    list(lookups, out, |lookup, out| {
        let Lookup {
            response_key,
            variable,
            targets,
        } = lookup;
        out.string(response_key);
        out.string(variable);
        list(targets, out, write_target);
    });
}

fn write_gates(gates: &[Gate], out: &mut Encoder) {
    list(gates, out, |gate, out| {
        let Gate { lookup, cond } = gate;
        optional_number(lookup.map(u32::from), out);
        out.number(cond.0.into());
    });
}

fn write_target(target: &Target, out: &mut Encoder) {
    let Target {
        layout,
        types,
        untyped,
        cond,
        representations,
        shape,
        selection,
        contexts,
    } = target;
    out.number(layout.0.into());
    optional_set(types.as_ref(), out);
    out.bool(*untyped);
    out.number(cond.0.into());
    list(representations, out, |representation, out| {
        let Representation { typename, members } = representation;
        out.optional_string(typename.as_deref());
        list(members, out, write_member);
    });
    out.number(shape.0.into());
    out.number((*selection).into());
    list(contexts, out, |context, out| {
        let ContextValue {
            variable,
            layout,
            members,
            required,
            cond,
        } = context;
        out.string(variable);
        out.number(layout.0.into());
        list(members, out, write_member);
        out.bool(*required);
        out.number(cond.0.into());
    });
}

/// Nesting is that of the schema's key and requires selections.
fn write_member(member: &Member, out: &mut Encoder) {
    let Member {
        key_json: json,
        slot,
        types,
        key,
        members,
    } = member;
    let text = String::from_utf8_lossy(json);
    let text = text.trim_end_matches(':').trim_matches('"').to_owned();
    out.string(&text);
    key_json(json, &text, out);
    optional_number(slot.map(u32::from), out);
    optional_set(types.as_ref(), out);
    out.bool(*key);
    list(members, out, write_member);
}

fn read_kind(from: &mut Decoder<'_>) -> Result<OperationKind> {
    let kinds = [
        OperationKind::Query,
        OperationKind::Mutation,
        OperationKind::Subscription,
    ];
    let kind = kinds.get(usize::from(from.byte()?));
    kind.copied()
        .ok_or(DecodeError::Invalid("a kind of operation"))
}

/// Reads the parts that name types.
struct Read<'f, 'a> {
    from: &'f mut Decoder<'a>,
    /// Number of types.
    types: u32,
}

impl Read<'_, '_> {
    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let n = self.from.length()?;
        self.from.spend(n.saturating_mul(size_of::<T>()))?;
        let mut out = Vec::with_capacity(n);
        for _ in 0..n {
            out.push(one(self)?);
        }
        Ok(out)
    }
    fn set(&mut self) -> Result<BitSet> {
        let n = self.from.length()?;
        // A set spills one word per 64 types.
        self.from.spend(self.types as usize / 8)?;
        let mut out = BitSet::new();
        let mut next = 0u32;
        for _ in 0..n {
            let ty = next.checked_add(self.from.u32()?);
            let ty = ty
                .filter(|ty| *ty < self.types)
                .ok_or(DecodeError::Invalid("no such type"))?;
            out.insert(ty);
            next = ty + 1;
        }
        Ok(out)
    }
    fn optional_set(&mut self) -> Result<Option<BitSet>> {
        self.from.bool()?.then(|| self.set()).transpose()
    }
    fn optional_number(&mut self) -> Result<Option<u32>> {
        read_optional_number(self.from)
    }
    fn optional_u16(&mut self) -> Result<Option<u16>> {
        let number = self.optional_number()?.map(u16::try_from);
        number
            .transpose()
            .map_err(|_| DecodeError::Invalid("a number is too large"))
    }
    fn key_json(&mut self, text: &str) -> Result<Box<[u8]>> {
        if self.from.bool()? {
            self.from.spend(text.len() + 3)?;
            return Ok(usual_key_json(text).into());
        }
        let bytes = self.from.bytes()?;
        // It is copied into requests and responses as it is.
        let name = bytes.strip_suffix(b":");
        let is_key = name.is_some_and(|name| {
            let mut scanner = ogive_json::Scanner::new(name);
            scanner.string().is_ok() && scanner.finish().is_ok()
        });
        is_key
            .then_some(bytes)
            .ok_or(DecodeError::Invalid("a JSON key"))
    }
    fn cond(&mut self) -> Result<Cond> {
        Ok(Cond(self.from.u32()?))
    }

    fn layout(&mut self) -> Result<Layout> {
        let parent = if self.from.bool()? {
            Some((LayoutId(self.from.u32()?), self.from.u16()?))
        } else {
            None
        };
        Ok(Layout {
            parent,
            types: self.set()?,
            slots: self
                .list(|read| {
                    Ok(Slot {
                        name: read.from.string()?,
                        client_key: read.from.optional_string()?,
                        lists: read.from.byte()?,
                        child: read.optional_number()?.map(LayoutId),
                        value: read.from.u32()?,
                    })
                })?
                .into(),
            output: self.list(Self::out_field)?.into(),
            restricted: self.list(|read| {
                Ok(RestrictedTypes {
                    types: read.set()?,
                    granted: read.cond()?,
                })
            })?,
        })
    }

    fn out_field(&mut self) -> Result<OutField> {
        let key = self.from.string()?;
        Ok(OutField {
            key_json: self.key_json(&key)?,
            key,
            source: self.source()?,
            types: self.optional_set()?,
            cond: self.cond()?,
            granted: self.cond()?,
            repeated: self.from.bool()?,
            wrapping: self.wrapping()?,
            coordinate: self.from.string()?,
        })
    }

    fn source(&mut self) -> Result<OutSource> {
        let kind = match self.from.byte()? {
            0 => LeafKind::Int,
            1 => LeafKind::Float,
            2 => LeafKind::String,
            3 => LeafKind::Boolean,
            4 => LeafKind::Id,
            5 => LeafKind::Enum(EnumId(self.from.u32()?)),
            6 => LeafKind::Any,
            7 => return Ok(OutSource::Object(self.from.u16()?)),
            8 => return Ok(OutSource::Typename),
            9 => return Ok(OutSource::Local(self.from.u32()?)),
            10 => return Ok(OutSource::Null),
            _ => return Err(DecodeError::Invalid("a source of output")),
        };
        Ok(OutSource::Leaf(self.from.u16()?, kind))
    }

    fn wrapping(&mut self) -> Result<Wrapping> {
        let lists = self.from.byte()?;
        let non_null = self.from.number()?;
        let mut out = Wrapping::NULLABLE;
        for layer in 0..=lists {
            if layer > 0 {
                out = out
                    .list_of()
                    .ok_or(DecodeError::Invalid("too many lists"))?;
            }
            if non_null >> layer & 1 == 1 {
                out = out.non_null();
            }
        }
        Ok(out)
    }

    fn shape(&mut self) -> Result<ObjectShape> {
        Ok(ObjectShape {
            layout: LayoutId(self.from.u32()?),
            typename_key: self.from.optional_string()?,
            interface_objects: self.list(|read| read.from.string())?.into(),
            fields: self
                .list(|read| {
                    Ok(ShapeField {
                        key: read.from.string()?,
                        slot: read.from.u16()?,
                        types: read.optional_set()?,
                        untyped: read.from.bool()?,
                        shape: read.optional_number()?.map(ShapeId),
                    })
                })?
                .into(),
        })
    }

    fn fetch(&mut self) -> Result<Fetch> {
        Ok(Fetch {
            subgraph: self.from.u32()?,
            wave: self.from.u32()?,
            dependencies: self.list(|read| Ok(FetchId(read.from.u32()?)))?,
            successors: self.list(|read| Ok(FetchId(read.from.u32()?)))?,
            kind: read_kind(self.from)?,
            segments: self.list(|read| {
                Ok(Segment {
                    text: read.from.string()?,
                    gates: read.gates()?,
                })
            })?,
            variables: self.list(|read| {
                Ok(VariableUse {
                    variable: read.from.u32()?,
                    gates: read.gates()?,
                })
            })?,
            root: if self.from.bool()? {
                Some(RootPart {
                    cond: self.cond()?,
                    shape: ShapeId(self.from.u32()?),
                })
            } else {
                None
            },
            lookups: self.list(|read| {
                Ok(Lookup {
                    response_key: read.from.string()?,
                    variable: read.from.string()?,
                    targets: read.list(Self::target)?,
                })
            })?,
        })
    }

    fn gates(&mut self) -> Result<Vec<Gate>> {
        self.list(|read| {
            Ok(Gate {
                lookup: read.optional_u16()?,
                cond: read.cond()?,
            })
        })
    }

    fn target(&mut self) -> Result<Target> {
        Ok(Target {
            layout: LayoutId(self.from.u32()?),
            types: self.optional_set()?,
            untyped: self.from.bool()?,
            cond: self.cond()?,
            representations: self
                .list(|read| {
                    Ok(Representation {
                        typename: read.from.optional_string()?,
                        members: read.list(|read| read.member(0))?,
                    })
                })?
                .into(),
            shape: ShapeId(self.from.u32()?),
            selection: self.from.u32()?,
            contexts: self.list(|read| {
                Ok(ContextValue {
                    variable: read.from.string()?,
                    layout: LayoutId(read.from.u32()?),
                    members: read.list(|read| read.member(0))?,
                    required: read.from.bool()?,
                    cond: read.cond()?,
                })
            })?,
        })
    }

    fn member(&mut self, depth: u32) -> Result<Member> {
        if depth > MEMBERS_DEPTH_MAX {
            return Err(DecodeError::Invalid("members nested too deeply"));
        }
        let text = self.from.string()?;
        Ok(Member {
            key_json: self.key_json(&text)?,
            slot: self.optional_u16()?,
            types: self.optional_set()?,
            key: self.from.bool()?,
            members: self.list(|read| read.member(depth + 1))?,
        })
    }
}
