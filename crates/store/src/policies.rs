//! Policies and the names they are filed under.
//!
//! A decision depends on the policy in force, so each event refers to the policy it was decided under.
//! Policies are few and events are many: a policy is stored once, under a digest.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use woodward_core::Policy;

use crate::conn::{Conn, to_json};
use crate::error::Result;

/// A policy with its text and its name, worked out once, before any transaction begins.
#[derive(Clone, Debug)]
pub(crate) struct NamedPolicy {
    pub(crate) policy: Policy,
    pub(crate) digest: String,
    doc: String,
}

impl NamedPolicy {
    pub(crate) fn new(policy: Policy) -> Self {
        let doc = to_json(&policy);
        Self {
            digest: digest(&doc),
            policy,
            doc,
        }
    }

    /// Stores the policy, unless it is there.
    pub(crate) async fn save<C: Conn>(&self, conn: &mut C) -> Result<()> {
        conn.execute(
            "INSERT INTO policies (digest, doc) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING",
            &[(&self.digest).into(), (&self.doc).into()],
        )
        .await
        .map(drop)
    }
}

/// 128-bit FNV-1a. Not a defence against anybody; policies are few and our own.
fn digest(doc: &str) -> String {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let hash = doc.bytes().fold(BASIS, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    });
    format!("{hash:032x}")
}

/// The policies that this process has met: their names, and which are known to be in the database, so
/// that neither naming nor storing one is part of every transition.
#[derive(Debug, Default)]
pub(crate) struct PolicyBook(Mutex<Vec<Entry>>);

#[derive(Debug)]
struct Entry {
    policy: Arc<NamedPolicy>,
    is_stored: bool,
}

impl PolicyBook {
    /// Bounded: a process works under few policies at a time, and forgetting one costs little.
    const MAX: usize = 16;

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The policy with its name, and whether it must still be stored.
    pub(crate) fn look_up(&self, policy: &Policy) -> (Arc<NamedPolicy>, bool) {
        let mut entries = self.entries();
        if let Some(entry) = entries.iter().find(|entry| entry.policy.policy == *policy) {
            return (Arc::clone(&entry.policy), !entry.is_stored);
        }
        if entries.len() >= Self::MAX {
            entries.clear();
        }
        let named = Arc::new(NamedPolicy::new(policy.clone()));
        entries.push(Entry {
            policy: Arc::clone(&named),
            is_stored: false,
        });
        (named, true)
    }

    /// The policy is in the database now.
    pub(crate) fn stored(&self, policy: &NamedPolicy) {
        let mut entries = self.entries();
        if let Some(entry) = entries
            .iter_mut()
            .find(|entry| entry.policy.digest == policy.digest)
        {
            entry.is_stored = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_named_by_what_it_says() {
        let policy = NamedPolicy::new(Policy::default());
        let other = NamedPolicy::new(Policy {
            attempts_max: 99,
            ..Policy::default()
        });
        assert_eq!(
            policy.digest,
            NamedPolicy::new(Policy::default()).digest,
            "the same in every process"
        );
        assert_ne!(policy.digest, other.digest);
        assert_eq!(policy.digest.len(), 32);
    }
}
