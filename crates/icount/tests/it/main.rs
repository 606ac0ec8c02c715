//! What plans say of their size, compared with what the allocator was asked for. One test, because all of them would
//! count together.

use ogive_icount::{graph::Graph, heap};
use ogive_plan::Plan;

#[global_allocator]
static ALLOCATOR: heap::Counted = heap::Counted;

/// Counting is for one thread, but the test's own framework has another.
const NOISE: usize = 2_000;

#[test]
fn plans_know_how_much_memory_they_take() {
    for (name, operation, variables) in [
        ("shop", "test-query", "{}"),
        ("four-services", "complex", r#"{"userId":"1"}"#),
        ("many-plans", "deep", "{}"),
        ("big-response", "all", "{}"),
    ] {
        let graph = Graph::read(name, operation, variables).unwrap();
        // What is made once is made.
        graph.plan().unwrap();
        let ((plan, before, after), counted) = heap::count(|| {
            let (mut plan, variables) = graph.plan().unwrap();
            drop(variables);
            plan.shrink_to_fit();
            let plan: Box<Plan> = Box::new(plan);
            let before = plan.heap_bytes();
            let after = plan.heap_bytes_in_use();
            (plan, before, after)
        });
        let held = usize::try_from(counted.held).unwrap();
        let said = plan.heap_bytes();
        let apart = said.abs_diff(held);
        assert!(
            apart <= held / 50 + NOISE,
            "{name}: {said} bytes are said, {held} are held"
        );
        // What was derived is a good part of it, and what may be learned is counted before it is.
        assert!(said > before + before / 10, "{name}: {before}, {said}");
        assert!(
            after > said && after < said + said / 5,
            "{name}: {said}, {after}"
        );
        let field = plan
            .shapes
            .iter()
            .find(|(_, shape)| !shape.fields.is_empty());
        let (shape, _) = field.unwrap();
        plan.derived().order.learn(&plan, shape, 0, 0);
        assert_eq!(plan.heap_bytes(), after, "{name}");
        assert_eq!(plan.heap_bytes_in_use(), after, "{name}");
    }
}
