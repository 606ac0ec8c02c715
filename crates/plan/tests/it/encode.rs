//! Plans as bytes: they come back equal, and no bytes do harm.

use ogive_plan::*;
use ogive_testbase::Rng;

use crate::{
    fixture::{Builder, ENTITIES, lookup, me},
    forms::rich,
};

fn header() -> Header {
    Header {
        planner: "1.2.3".into(),
        schema: 0x0123_4567_89ab_cdef,
    }
}

/// A plan with objects in objects, look-ups below some of them, conditions and names of all kinds.
fn random_plan(seed: u64) -> Plan {
    let mut random = Rng::new(seed);
    let names = ["id", "naïve", "日本", "_x", "a.b", "name", "emoji🦀", "x1"];
    let types = ["Query", "A", "B", "C", "D"];
    let mut b = Builder::new(&["one", "two", "three"], &types);
    b.plan.variables = vec!["p".into(), "q".into()];
    let conds = [
        Cond::TRUE,
        b.cond(&[&[(0, true)], &[(1, false), (0, false)]]),
    ];
    b.plan.enums = [vec!["X".into(), "Y".into()]].into_iter().collect();
    let mut places = vec![Plan::ROOT];
    let mut keys: Vec<Vec<(String, Option<LayoutId>)>> = vec![Vec::new()];
    for n in 0..1 + random.below(12) {
        let parent = random.below(places.len());
        let name = format!("{}{n}", random.pick(&names));
        let ty: &str = random.pick::<&str>(&["T", "T!", "[T!]", "[[T]!]!"]);
        let mut possible: Vec<&str> = types[1..]
            .iter()
            .copied()
            .filter(|_| random.chance(40))
            .collect();
        if possible.is_empty() {
            possible.push("A");
        }
        let child = b.object(places[parent], &name, ty, &possible);
        b.last_output(places[parent]).cond = *random.pick(&conds);
        keys[parent].push((name, Some(child)));
        places.push(child);
        keys.push(vec![("key".into(), None)]);
        b.hidden(child, "key");
        for leaf in 0..random.below(4) {
            let name = format!("{}{leaf}", random.pick(&names));
            let wrapping = crate::fixture::wrapping(random.pick::<&str>(&["S", "S!", "[S!]!"])).0;
            let kind = *random.pick(&[
                LeafKind::Int,
                LeafKind::Float,
                LeafKind::Id,
                LeafKind::Any,
                LeafKind::Enum(EnumId(0)),
            ]);
            b.leaf_of(child, &name, wrapping, kind);
            keys.last_mut().unwrap().push((name, None));
        }
    }
    // Children come after parents, so shapes are made from the end.
    let mut shapes: Vec<Option<ShapeId>> = vec![None; places.len()];
    for at in (1..places.len()).rev() {
        let fields: Vec<(&str, Option<ShapeId>)> = keys[at]
            .iter()
            .map(|(name, child)| (name.as_str(), child.and_then(|c| shapes[c.0 as usize])))
            .collect();
        shapes[at] = Some(b.typed_shape(places[at], &fields));
    }
    let fields: Vec<(&str, Option<ShapeId>)> = keys[0]
        .iter()
        .map(|(name, child)| (name.as_str(), child.and_then(|c| shapes[c.0 as usize])))
        .collect();
    let root = b.root(0, "{x}", &fields);
    let mut subgraph = 1;
    for _ in 0..random.below(4) {
        let at = 1 + random.below(places.len() - 1);
        b.hidden(places[at], "more");
        subgraph = (subgraph + random.below(2) as u32).min(2);
        let shape = b.shape(places[at], &[("alias=more", None)]);
        let mut target = b.target(places[at], &["key"], shape);
        target.cond = *random.pick(&conds);
        b.fetch(subgraph, ENTITIES, &[root], vec![lookup(vec![target])]);
    }
    b.plan.locals = random.below(3) as u32;
    // Two look-ups of one place may write one slot at a time; such plans are not wanted here.
    b.build_unchecked()
}

fn plans() -> Vec<Plan> {
    let random = (0..400)
        .map(random_plan)
        .filter(|plan| verify(plan).is_ok());
    let mut plans: Vec<Plan> = random.collect();
    assert!(
        plans.len() > 200,
        "only {} random plans are sound",
        plans.len()
    );
    plans.extend([rich(), me(["User", "String!", "[Review!]", "Int"])]);
    plans
}

#[test]
fn plans_come_back_equal() {
    for plan in plans() {
        let bytes = encode(&plan, &header());
        assert_eq!(
            bytes,
            encode(&plan, &header()),
            "equal plans give equal bytes"
        );
        let (found, decoded) = decode(&bytes).unwrap();
        assert_eq!(found, header());
        assert!(decoded == plan, "{}", text(&plan));
        assert!(bytes.len() < plan.heap_bytes(), "smaller than in memory");
    }
}

#[test]
fn damage_is_found() {
    let bytes = encode(&rich(), &header());
    for n in 0..bytes.len() {
        assert!(decode(&bytes[..n]).is_err(), "cut off after {n}");
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[n] ^= 1 << bit;
            assert!(decode(&damaged).is_err(), "bit {bit} of byte {n}");
        }
    }
    let mut more = bytes.clone();
    more.push(0);
    assert_eq!(decode(&more), Err(DecodeError::Checksum));
    assert_eq!(decode(b"no plan at all"), Err(DecodeError::Magic));
    let mut other = bytes;
    other[4] = 0xee;
    assert_eq!(decode(&other), Err(DecodeError::Version(0x00ee)));
}

/// Puts the right checksum over changed content.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = stable_hash(&bytes[22..]);
    bytes[6..22].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Whoever can write the file can write the checksum too. What is accepted then is a sound plan all the same.
#[test]
fn hostile_bytes_are_refused_or_sound() {
    let mut random = Rng::new(7);
    let mut refused = 0;
    let plans = plans();
    for round in 0..8_000 {
        let mut bytes = encode(&plans[round % plans.len()], &header());
        for _ in 0..1 + random.below(4) {
            let at = 22 + random.below(bytes.len() - 22);
            match random.below(5) {
                0 => bytes[at] = random.next() as u8,
                1 => bytes[at] = bytes[at].wrapping_add(1),
                2 => bytes.insert(at, random.next() as u8),
                3 => drop(bytes.remove(at)),
                _ => {
                    let from = 22 + random.below(bytes.len() - 22);
                    bytes[at] = bytes[from];
                }
            }
        }
        match decode(&sealed(bytes)) {
            Err(_) => refused += 1,
            Ok((header, plan)) => {
                verify(&plan).unwrap();
                assert_eq!(decode(&encode(&plan, &header)), Ok((header, plan)));
            }
        }
    }
    assert!(refused > 3_000, "only {refused} refused");
}

#[test]
fn bundles_come_back_equal_and_share_strings() {
    let plans: Vec<Plan> = plans().into_iter().take(50).collect();
    let alone: usize = plans.iter().map(|plan| encode(plan, &header()).len()).sum();
    let bundle = Bundle {
        planner: "1.2.3".into(),
        schema: u128::MAX,
        parts: vec![("User".into(), 1), ("User.name".into(), 2)],
        plans: plans
            .into_iter()
            .enumerate()
            .map(|(n, plan)| BundledPlan {
                key: n.to_le_bytes().into(),
                name: format!("Operation{n}").into(),
                parts: vec![0, 1],
                plan,
            })
            .collect(),
    };
    let bytes = bundle.encode();
    assert!(bytes.len() < alone, "{} of {alone}", bytes.len());
    assert!(Bundle::decode(&bytes).as_ref() == Ok(&bundle));
    assert_eq!(
        decode(&bytes),
        Err(DecodeError::Magic),
        "a bundle is no plan"
    );
    let mut wrong = bundle;
    wrong.plans[3].parts.push(2);
    assert_eq!(
        Bundle::decode(&wrong.encode()),
        Err(DecodeError::Invalid("no such part"))
    );
}

#[test]
fn memory_of_a_plan_is_measured() {
    let small = me(["User"; 4]).heap_bytes();
    let large = rich().heap_bytes();
    assert!((500..20_000).contains(&small), "{small}");
    assert!(large > small, "{large} > {small}");
    let mut roomy = rich();
    for (_, fetch) in roomy.fetches.iter_mut() {
        fetch.lookups.reserve(100);
    }
    roomy.fetches[FetchId(0)].segments.reserve(100);
    assert!(roomy.heap_bytes() > large + 10_000);
    roomy.shrink_to_fit();
    assert!(roomy.heap_bytes() <= large && roomy == rich());
}

#[test]
fn equal_lists_are_held_once() {
    let mut plan = rich();
    let layouts = plan.layouts.len();
    for _ in 0..100 {
        let mut copy = plan.layouts[LayoutId(1)].clone();
        // As if it had been made on its own.
        copy.slots = copy.slots.to_vec().into();
        copy.output = copy.output.to_vec().into();
        plan.layouts.push(copy);
    }
    let apart = plan.heap_bytes();
    let before = plan.clone();
    plan.shrink_to_fit();
    drop(before);
    let added = 100 * size_of::<Layout>();
    assert!(
        plan.heap_bytes() < rich().heap_bytes() + 2 * added,
        "{apart}"
    );
    assert!(plan.heap_bytes() < apart);
    let (first, last) = (LayoutId(1), LayoutId(layouts as u32 + 50));
    assert!(plan.layouts[first].slots.is_same(&plan.layouts[last].slots));
}
