//! Supervised processes, for real: the test binary starts itself again as a supervisor.

fn main() {}
