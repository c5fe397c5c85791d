//! `PgAccess`: how to use a server that runs, whichever process started it.
//!
//! It must never reach a server that no test of ours started: it is made by the process that started
//! one, or from what that process told its children.

use super::binaries::Binaries;
use super::command::command;
use super::error::PgError;
use super::name::random_name;
use super::profile::Profile;
use super::server::PgServer;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

pub(super) const HOST: &str = "127.0.0.1";
/// "PORT USER DIRECTORY" of the server that all test processes of a run share.
const VARIABLE: &str = "WOODWARD_TEST_POSTGRES";

/// A running server's programs and address.
#[derive(Debug)]
pub struct PgAccess {
    pub(super) binaries: Binaries,
    pub(super) superuser: String,
    pub(super) port: u16,
    pub(super) directory: PathBuf,
}

impl PgAccess {
    /// The [`Profile::Test`] server that tests share: the one of the whole run where
    /// `cargo xtask test` started one, otherwise this process's own, started by the first caller.
    ///
    /// It can't be stopped: a crash test starts its own [`PgServer`].
    pub fn shared() -> Result<&'static Self, &'static PgError> {
        static SHARED: OnceLock<Result<Shared, PgError>> = OnceLock::new();
        SHARED
            .get_or_init(Shared::find)
            .as_ref()
            .map(Shared::access)
    }

    /// Creates a fresh, empty database and returns its connection string.
    pub fn create_database(&self) -> Result<String, PgError> {
        let name = random_name("test_");
        self.psql("postgres", &format!("CREATE DATABASE {name}"))?;
        Ok(self.url(&name))
    }

    /// The TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path of one of this server version's programs, such as `pgbench`.
    pub fn bin(&self, program: &str) -> PathBuf {
        self.binaries.path(program)
    }

    /// What [`Self::shared`] of another process needs to use this server.
    pub fn to_variable(&self) -> String {
        let directory = self.directory.display();
        format!("{} {} {directory}", self.port, self.superuser)
    }

    fn from_variable(text: &str) -> Result<Self, PgError> {
        let malformed = || PgError::MalformedVariable {
            name: VARIABLE,
            value: text.to_owned(),
        };
        let mut fields = text.splitn(3, ' ');
        let mut next = || fields.next().ok_or_else(malformed);
        Ok(Self {
            port: next()?.parse().map_err(|_| malformed())?,
            superuser: next()?.to_owned(),
            directory: next()?.into(),
            binaries: Binaries::find()?,
        })
    }

    /// Through the socket in the server's own directory, so that nobody else can answer.
    /// The server creates it after it has the TCP port, so an answer proves both.
    pub(super) fn psql(&self, database: &str, sql: &str) -> Result<(), PgError> {
        let mut psql = command(self.bin("psql"), None);
        psql.args(["--no-psqlrc", "--quiet", "--no-password"])
            .arg("--host")
            .arg(&self.directory)
            .args(["--port", &self.port.to_string()])
            .args(["--username", &self.superuser])
            .args(["--dbname", database, "--command", sql])
            .env("PGCONNECT_TIMEOUT", "60");
        succeed("psql", format!("database {database}"), &mut psql)
    }

    fn url(&self, database: &str) -> String {
        let Self {
            port, superuser, ..
        } = self;
        format!("host={HOST} port={port} user={superuser} dbname={database}")
    }
}

/// The server that tests share.
enum Shared {
    /// Started by this process.
    Own(PgServer),
    /// Started for the whole run.
    Given(PgAccess),
}

impl Shared {
    fn find() -> Result<Self, PgError> {
        match std::env::var(VARIABLE) {
            Ok(text) => PgAccess::from_variable(&text).map(Self::Given),
            Err(_) => PgServer::start(Profile::Test).map(Self::Own),
        }
    }

    fn access(&self) -> &PgAccess {
        match self {
            Self::Own(server) => server.access(),
            Self::Given(access) => access,
        }
    }
}

/// Runs a program of the server's; an error with what it wrote when it fails.
pub(super) fn succeed(
    program: &'static str,
    object: String,
    command: &mut Command,
) -> Result<(), PgError> {
    let ended = command
        .stderr(Stdio::piped())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .map_err(PgError::io("run", Path::new(program)))?;
    if ended.status.success() {
        return Ok(());
    }
    Err(PgError::ProgramFailed {
        program,
        object,
        status: ended.status.to_string(),
        output: String::from_utf8_lossy(&ended.stderr).trim_end().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_can_use_the_server() {
        let server = PgServer::start(Profile::Test).unwrap();
        let given = PgAccess::from_variable(&server.access().to_variable()).unwrap();
        assert_eq!(given.port(), server.port());
        given.create_database().unwrap();
    }

    #[test]
    fn a_malformed_variable_is_an_error_and_no_other_server_is_tried() {
        for text in ["", "5432", "5432 user", "port user /tmp"] {
            let error = PgAccess::from_variable(text).unwrap_err();
            assert!(
                matches!(error, PgError::MalformedVariable { .. }),
                "{error}"
            );
        }
    }
}
