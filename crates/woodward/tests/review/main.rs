//! What a close reading of the engine put in doubt, tried with the real program.

mod landing;
mod place;
mod runs;
mod worktrees;
