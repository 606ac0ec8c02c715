//! What must not change, or not get worse, when the input changes in a way that should not matter.

use ogive_federation::Supergraph;
use ogive_planner::{
    PlanOptions,
    search::search,
    tree::{Tree, grow},
};
use ogive_testbase::Rng;

use super::generate::{Form, Selected, World, text};
use super::{PREAMBLE, operation, read, schema_definition};

/// Generated worlds.
const WORLDS: u64 = 400;

fn exact() -> PlanOptions {
    PlanOptions {
        exact_fuel: u64::MAX,
        ..PlanOptions::default()
    }
}

fn supergraph(world: &World, order: &[usize]) -> Supergraph {
    let sdl = world.sdl(order);
    read(&format!("{}{PREAMBLE}{sdl}", schema_definition(&sdl)))
}

/// Waves and requests; `None` if there is no plan.
fn cost(supergraph: &Supergraph, query: &str, options: &PlanOptions) -> Option<(usize, usize)> {
    let op = operation(supergraph, query);
    let tree: Tree<'_> = grow(supergraph, &op, options).expect("a tree");
    let found = search(&tree, &tree.scopes()[0], options).ok()?;
    Some((found.requests.waves.len(), found.requests.count()))
}

fn plan_text(supergraph: &Supergraph, query: &str) -> Option<String> {
    let op = operation(supergraph, query);
    let plan = ogive_planner::plan(supergraph, &op, &PlanOptions::default()).ok()?;
    Some(ogive_plan::text(&plan))
}

/// Calls `check` with worlds, operations that can be planned, and a generator to go on with; returns how many.
fn each(mut check: impl FnMut(&World, &Supergraph, &[Selected], &mut Rng)) -> usize {
    let mut count = 0;
    for seed in 1_000_000..1_000_000 + WORLDS {
        let mut random = Rng::new(seed);
        let world = World::random(&mut random);
        let op = world.operation(&mut random);
        let natural: Vec<usize> = (0..world.subgraphs).collect();
        let query = text(&op, Form::default());
        let supergraph = supergraph(&world, &natural);
        if cost(&supergraph, &query, &PlanOptions::default()).is_some() {
            count += 1;
            check(&world, &supergraph, &op, &mut random);
        }
    }
    assert!(count > WORLDS as usize / 4, "{count} plans are too few");
    count
}

#[test]
fn a_further_provider_makes_no_plan_worse() {
    let mut better = 0;
    each(|world, poorer, op, random| {
        let natural: Vec<usize> = (0..world.subgraphs).collect();
        let query = text(op, Form::default());
        let before = cost(poorer, &query, &exact());
        let mut richer = world.clone();
        let t = random.below(world.entities.len());
        let entity = &mut richer.entities[t];
        let leaf = random.below(entity.leaves.len());
        // A value that is worked out from others stays where it is.
        if entity.leaves[leaf].requires.is_none() {
            entity.leaves[leaf].providers = entity.present;
            let after = cost(&supergraph(&richer, &natural), &query, &exact());
            assert!(
                after <= before && after.is_some(),
                "{before:?} became {after:?}: {query}\n{}\nwith f{leaf} of T{t} everywhere",
                world.sdl(&natural)
            );
            better += usize::from(after < before);
        }
    });
    assert!(better > 10, "more providers help sometimes: {better}");
}

#[test]
fn the_order_of_subgraphs_changes_no_cost() {
    each(|world, original, op, _| {
        let natural: Vec<usize> = (0..world.subgraphs).collect();
        let reversed: Vec<usize> = (0..world.subgraphs).rev().collect();
        let query = text(op, Form::default());
        assert_eq!(
            cost(original, &query, &exact()),
            cost(&supergraph(world, &reversed), &query, &exact()),
            "{query}\n{}",
            world.sdl(&natural)
        );
    });
}

#[test]
fn the_order_of_fields_changes_no_cost() {
    each(|world, supergraph, op, _| {
        let natural: Vec<usize> = (0..world.subgraphs).collect();
        let query = text(op, Form::default());
        let reversed = text(
            op,
            Form {
                reversed: true,
                ..Form::default()
            },
        );
        for options in [PlanOptions::default(), exact()] {
            assert_eq!(
                cost(supergraph, &query, &options),
                cost(supergraph, &reversed, &options),
                "{query}\n{}",
                world.sdl(&natural)
            );
        }
    });
}

#[test]
fn fragments_change_nothing() {
    each(|world, supergraph, op, _| {
        let natural: Vec<usize> = (0..world.subgraphs).collect();
        let wrapped = Form {
            wrapped: true,
            ..Form::default()
        };
        let query = text(op, Form::default());
        assert_eq!(
            plan_text(supergraph, &query),
            plan_text(supergraph, &text(op, wrapped)),
            "{query}\n{}",
            world.sdl(&natural)
        );
    });
}

#[test]
fn typenames_cost_no_request() {
    each(|world, supergraph, op, _| {
        let natural: Vec<usize> = (0..world.subgraphs).collect();
        let named = Form {
            typename: true,
            ..Form::default()
        };
        let query = text(op, Form::default());
        assert_eq!(
            cost(supergraph, &query, &PlanOptions::default()),
            cost(supergraph, &text(op, named), &PlanOptions::default()),
            "{query}\n{}",
            world.sdl(&natural)
        );
    });
}
