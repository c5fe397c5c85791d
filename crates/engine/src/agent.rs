//! Agents as the engine needs them: which one does the work, what it costs, what its endings mean.
//!
//! How programs are talked to is the business of `woodward_agents`; what follows from an ending for
//! a task is core's. Here is what is between: availability, money, and sentences for people.

pub(crate) mod available;
pub(crate) mod ending;
pub(crate) mod price;
pub(crate) mod resume;
pub(crate) mod version;
