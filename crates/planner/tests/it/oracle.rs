//! Is the search as good as trying everything?
//!
//! On small generated instances all sets of requests at the minimal number of waves are tried with the readable closure,
//! fewest first. The search must find as few with fuel for a proof, and almost always without.

use ogive_base::BitSet;
use ogive_planner::{
    PlanOptions, Profile,
    closure::{Closure, NEVER, Requests},
    search::search,
    tree::{FactId, Scope, Tree, grow},
};
use ogive_testbase::Rng;

use super::generate::{Form, World, text};
use super::{PREAMBLE, operation, read, schema_definition};

/// Instances that a plan of at least two requests exists for.
const INSTANCES: usize = 2_000;
/// Generated worlds at most; a share of the operations cannot be answered.
const WORLDS: u64 = 20_000;
/// Operations tried on each.
const OPERATIONS: usize = 4;
/// (wave, subgraph) requests to choose from at most: more take too long to try.
const CHOICES_MAX: usize = 12;

/// With all these requests, is everything wanted known?
fn suffices(
    tree: &Tree<'_>,
    scope: &Scope,
    wanted: &[FactId],
    requests: &Requests,
    closure: &mut Closure,
) -> bool {
    closure.run(tree, scope, requests);
    wanted.iter().all(|f| closure.known(*f) != NEVER)
}

/// The fewest waves, and all requests in them that reach some object.
fn choices(
    tree: &Tree<'_>,
    scope: &Scope,
    wanted: &[FactId],
    closure: &mut Closure,
) -> (usize, Vec<(usize, u32)>) {
    let subgraphs = tree.supergraph.subgraphs.len();
    for waves in 1..10 {
        let everything = Requests {
            waves: vec![BitSet::all(subgraphs); waves],
        };
        if suffices(tree, scope, wanted, &everything, closure) {
            let reaches =
                |w: usize, s: u32| scope.nodes.iter().any(|n| closure.open(*n, w).contains(s));
            let pairs = (0..waves).flat_map(|w| (0..subgraphs as u32).map(move |s| (w, s)));
            return (waves, pairs.filter(|(w, s)| reaches(*w, *s)).collect());
        }
    }
    panic!("nine waves are not enough");
}

/// The fewest requests that suffice, by trying all sets smaller than `known_to_suffice`.
fn fewest(
    tree: &Tree<'_>,
    scope: &Scope,
    wanted: &[FactId],
    waves: usize,
    choices: &[(usize, u32)],
    known_to_suffice: usize,
) -> usize {
    let mut closure = Closure::default();
    let mut sets: Vec<u32> = (0..1u32 << choices.len())
        .filter(|set| (set.count_ones() as usize) < known_to_suffice)
        .collect();
    sets.sort_by_key(|set| set.count_ones());
    for set in sets {
        let mut requests = Requests {
            waves: vec![BitSet::new(); waves],
        };
        for (i, (wave, subgraph)) in choices.iter().enumerate() {
            if set & (1 << i) != 0 {
                requests.waves[*wave].insert(*subgraph);
            }
        }
        if suffices(tree, scope, wanted, &requests, &mut closure) {
            return set.count_ones() as usize;
        }
    }
    known_to_suffice
}

#[test]
fn the_search_finds_what_trying_everything_finds() {
    let default = PlanOptions::default();
    let exact = PlanOptions {
        exact_fuel: u64::MAX,
        profile: Profile::CriticalPath,
        ..default.clone()
    };
    // The first deletion order alone: shows that the instances leave something to find.
    let hasty = PlanOptions {
        fuel: 0,
        patience: 0,
        ..default.clone()
    };
    let (mut gaps, mut hasty_gaps) = ([0usize; 8], [0usize; 8]);
    let (mut waves_seen, mut requests_seen) = ([0usize; 10], [0usize; 16]);
    let mut instances = 0;
    for seed in 0..WORLDS {
        if instances >= INSTANCES {
            break;
        }
        let mut random = Rng::new(seed);
        let world = World::random(&mut random);
        let order: Vec<usize> = (0..world.subgraphs).collect();
        let sdl = world.sdl(&order);
        let supergraph = read(&format!("{}{PREAMBLE}{sdl}", schema_definition(&sdl)));
        for _ in 0..OPERATIONS {
            let query = text(&world.operation(&mut random), Form::default());
            let op = operation(&supergraph, &query);
            let tree = grow(&supergraph, &op, &default).expect("a tree");
            let scope = &tree.scopes()[0];
            let Ok(found) = search(&tree, scope, &default) else {
                continue;
            };
            let mut closure = Closure::default();
            let (waves, choices) = choices(&tree, scope, &found.wanted, &mut closure);
            // One request cannot be improved on.
            if choices.len() > CHOICES_MAX || found.requests.count() < 2 {
                continue;
            }
            instances += 1;
            let context = || format!("seed {seed}: {query}\n{sdl}");
            assert_eq!(found.requests.waves.len(), waves, "{}", context());
            let count = found.requests.count();
            let least = fewest(&tree, scope, &found.wanted, waves, &choices, count);
            let proven = search(&tree, scope, &exact).expect("found before");
            assert_eq!(proven.requests.count(), least, "{}", context());
            assert!(proven.proven, "{}", context());
            assert!(found.lower_bound <= least, "{}", context());
            assert!(!found.proven || count == least, "{}", context());
            assert!(
                suffices(&tree, scope, &found.wanted, &found.requests, &mut closure),
                "{}",
                context()
            );
            let plan = ogive_planner::plan(&supergraph, &op, &default)
                .unwrap_or_else(|e| panic!("{e}: {}", context()));
            assert!(plan.fetches.len() <= count, "{}", context());
            if let Err(wrong) = ogive_plan::verify(&plan) {
                panic!("{wrong:?}\n{}\n{}", context(), ogive_plan::text(&plan));
            }
            if instances % 20 == 0
                && let Err(wrong) = super::soundness(&supergraph, &plan)
            {
                panic!("{wrong}\n{}", context());
            }
            gaps[(count - least).min(7)] += 1;
            let first = search(&tree, scope, &hasty).expect("found before");
            hasty_gaps[(first.requests.count() - least).min(7)] += 1;
            waves_seen[waves] += 1;
            requests_seen[least.min(15)] += 1;
        }
    }
    println!("gap  instances  with one order");
    for (gap, (n, hasty)) in gaps.iter().zip(&hasty_gaps).enumerate() {
        if n + hasty > 0 {
            println!("{gap:>3}  {n:>9}  {hasty:>14}");
        }
    }
    println!("waves {waves_seen:?} requests {requests_seen:?}");
    assert!(instances >= INSTANCES, "enough operations can be answered");
    assert!(gaps[0] * 100 >= instances * 99, "{gaps:?}");
    assert_eq!(gaps[0] + gaps[1], instances, "{gaps:?}");
    assert!(
        hasty_gaps[0] < instances,
        "the instances leave nothing to find"
    );
    assert!(
        waves_seen.iter().filter(|n| **n > 20).count() >= 3,
        "instances are of several depths: {waves_seen:?}"
    );
}
