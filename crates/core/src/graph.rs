//! The graph of what comes after what.
//!
//! A cycle is refused when it would be made, and named, so that no task ever waits for itself. The
//! search keeps its own stack: a long chain can't exhaust ours.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The first cycle found among `after` (each node with the nodes it comes after), as a walk that
/// ends where it began; `None` if there is none.
pub fn find_cycle<N: Ord + Clone>(after: &BTreeMap<N, Vec<N>>) -> Option<Vec<N>> {
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Mark {
        OnPath,
        Done,
    }
    let mut marks: BTreeMap<&N, Mark> = BTreeMap::new();
    for root in after.keys() {
        if marks.contains_key(root) {
            continue;
        }
        // The path from the root, each node with how many of its edges have been followed.
        let mut path: Vec<(&N, usize)> = alloc::vec![(root, 0)];
        marks.insert(root, Mark::OnPath);
        while let Some((node, followed)) = path.last_mut() {
            let node = *node;
            let next = after.get(node).and_then(|edges| edges.get(*followed));
            *followed += 1;
            match next {
                None => {
                    marks.insert(node, Mark::Done);
                    path.pop();
                }
                Some(next) => match marks.get(next) {
                    Some(Mark::Done) => {}
                    Some(Mark::OnPath) => {
                        let start = path.iter().position(|(seen, _)| *seen == next)?;
                        let mut cycle: Vec<N> =
                            path[start..].iter().map(|(n, _)| (*n).clone()).collect();
                        cycle.push(next.clone());
                        return Some(cycle);
                    }
                    None => {
                        marks.insert(next, Mark::OnPath);
                        path.push((next, 0));
                    }
                },
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn graph(edges: &[(u32, &[u32])]) -> BTreeMap<u32, Vec<u32>> {
        edges.iter().map(|(n, to)| (*n, to.to_vec())).collect()
    }

    #[test]
    fn a_cycle_is_named_from_start_to_start() {
        let cycle = find_cycle(&graph(&[(1, &[2]), (2, &[3]), (3, &[4, 2]), (4, &[])]));
        assert_eq!(cycle, Some(vec![2, 3, 2]));
        assert_eq!(find_cycle(&graph(&[(1, &[1])])), Some(vec![1, 1]));
    }

    #[test]
    fn a_diamond_is_no_cycle() {
        let diamond = graph(&[(1, &[2, 3]), (2, &[4]), (3, &[4]), (4, &[9])]);
        assert_eq!(find_cycle(&diamond), None);
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_does_not_exhaust_the_stack() {
        let chain: BTreeMap<u32, Vec<u32>> = (0..100_000).map(|n| (n, vec![n + 1])).collect();
        assert_eq!(find_cycle(&chain), None);
    }

    proptest! {
        #[test]
        fn a_found_cycle_walks_real_edges(edges in prop::collection::vec((0_u8..12, 0_u8..12), 0..40)) {
            let mut after: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
            for (from, to) in &edges {
                after.entry(*from).or_default().push(*to);
            }
            match find_cycle(&after) {
                Some(cycle) => {
                    prop_assert!(cycle.len() >= 2);
                    prop_assert_eq!(cycle.first(), cycle.last());
                    for pair in cycle.windows(2) {
                        prop_assert!(edges.contains(&(pair[0], pair[1])));
                    }
                }
                None => {
                    // Peeling off nodes that nothing remaining points from must empty the graph.
                    let mut left = edges.clone();
                    loop {
                        let sources: Vec<u8> = left.iter().map(|e| e.0).collect();
                        let before = left.len();
                        left.retain(|(_, to)| sources.contains(to));
                        if left.len() == before {
                            break;
                        }
                    }
                    prop_assert!(left.is_empty(), "missed a cycle in {:?}", edges);
                }
            }
        }
    }
}
