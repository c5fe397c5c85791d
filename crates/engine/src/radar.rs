//! The conflict radar.

mod delta;
pub mod picture;
