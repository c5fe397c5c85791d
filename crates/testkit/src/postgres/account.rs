//! The user that PostgreSQL's programs run as.
//!
//! PostgreSQL refuses to run as root; this never asks for more rights than we have.

use super::error::PgError;
use std::fs;
use std::path::Path;

const PASSWD: &str = "/etc/passwd";
const CHOICES: [&str; 2] = ["postgres", "nobody"];

/// A user and its primary group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Account {
    /// Whom to become when our own effective user is `uid`; `None` is oneself.
    pub(crate) fn instead_of(uid: u32) -> Result<Option<Self>, PgError> {
        if uid != 0 {
            return Ok(None);
        }
        let passwd = fs::read_to_string(PASSWD).map_err(PgError::io("read", Path::new(PASSWD)))?;
        match CHOICES.iter().find_map(|name| entry(&passwd, name)) {
            Some(account) => Ok(Some(account)),
            None => Err(PgError::NoAccount {
                tried: CHOICES.join(", "),
            }),
        }
    }
}

fn entry(passwd: &str, name: &str) -> Option<Account> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let _password = fields.next()?;
        Some(Account {
            uid: fields.next()?.parse().ok()?,
            gid: fields.next()?.parse().ok()?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_found_by_its_whole_name() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\n\
                      postgres2:x:7:8::/:/bin/sh\n\
                      postgres:x:101:104:PostgreSQL:/var/lib/postgresql:/bin/bash\n";
        assert_eq!(
            entry(passwd, "postgres"),
            Some(Account { uid: 101, gid: 104 })
        );
        assert_eq!(entry(passwd, "nobody"), None);
    }

    #[test]
    fn whoever_is_not_root_stays_oneself() {
        assert_eq!(Account::instead_of(1000).unwrap(), None);
    }
}
