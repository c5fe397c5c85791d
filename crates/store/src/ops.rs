//! The operations, each written once for both databases.

pub(crate) mod claim;
pub(crate) mod create;
pub(crate) mod due;
pub(crate) mod effects;
pub(crate) mod events;
pub(crate) mod gates;
pub(crate) mod landing;
pub(crate) mod leases;
pub(crate) mod ledger;
pub(crate) mod messages;
pub(crate) mod projects;
pub(crate) mod retention;
pub(crate) mod runs;
pub(crate) mod tasks;
pub(crate) mod workers;
pub(crate) mod write;
