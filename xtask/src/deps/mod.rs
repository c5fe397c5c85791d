//! The rules on dependencies: a pure decision over parsed facts.
//!
//! Nothing in this module runs a process, reads a file or prints.

mod direction;
mod metadata;
mod purity;
mod rules;
mod sources;
mod tree;

pub(crate) use metadata::Metadata;
pub(crate) use sources::Source;
pub(crate) use tree::Tree;

/// All that the rules look at.
pub(crate) struct Facts {
    pub(crate) metadata: Metadata,
    pub(crate) core_tree: Tree,
    pub(crate) core_sources: Vec<Source>,
}

/// One sentence for every broken rule: what is wrong, where, and what to do.
pub(crate) fn examine(facts: &Facts) -> Vec<String> {
    [
        direction::examine(&facts.metadata),
        purity::examine(&facts.metadata, &facts.core_tree),
        sources::examine(&facts.core_sources),
    ]
    .concat()
}
