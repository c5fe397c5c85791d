//! `PgServer`: start, use, crash and restart one real PostgreSQL server.
//!
//! Blocking on purpose, so that it works inside and outside any async runtime.
//! It must never skip, fall back to another server, or leave one behind.

use super::access::{HOST, PgAccess, succeed};
use super::binaries::Binaries;
use super::command::command;
use super::error::PgError;
use super::home::Home;
use super::name::random_name;
use super::port::free_loopback_port;
use super::postmaster::Postmaster;
use super::profile::Profile;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const READY_TIMEOUT: Duration = Duration::from_secs(60);
const RETRY_PAUSE: Duration = Duration::from_millis(20);
const PORT_TRIES_MAX: u32 = 10;
const LOG_TAIL_LINES: usize = 30;

/// A running PostgreSQL server that belongs to this process and dies with it.
#[derive(Debug)]
pub struct PgServer {
    // Declared before `home`: the server ends before its directory goes.
    postmaster: Option<Postmaster>,
    home: Home,
    profile: Profile,
    access: PgAccess,
}

impl PgServer {
    /// Starts a server of one's own. It is ready when this returns.
    pub fn start(profile: Profile) -> Result<Self, PgError> {
        Self::start_on(profile, free_loopback_port)
    }

    /// How to use it.
    pub fn access(&self) -> &PgAccess {
        &self.access
    }

    /// Creates a fresh, empty database and returns its connection string.
    pub fn create_database(&self) -> Result<String, PgError> {
        self.access.create_database()
    }

    /// Stops the server as a crash would: no checkpoint, open connections cut.
    /// Returns when it is gone; the data stay. Does nothing when it is stopped already.
    pub fn stop_immediately(&mut self) -> Result<(), PgError> {
        match self.postmaster.take() {
            Some(mut postmaster) => postmaster.stop_immediately(),
            None => Ok(()),
        }
    }

    /// Starts the server again on the same data and port, stopping it first if it runs.
    /// Recovery is over when this returns.
    pub fn restart(&mut self) -> Result<(), PgError> {
        self.stop_immediately()?;
        let deadline = Instant::now() + READY_TIMEOUT;
        loop {
            match self.boot(&[]) {
                // An outgoing connection of any process can hold the port for a moment.
                Err(PgError::PortTaken { .. }) if Instant::now() < deadline => {
                    std::thread::sleep(RETRY_PAUSE);
                }
                outcome => return outcome,
            }
        }
    }

    /// The TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.access.port
    }

    /// The path of one of this server version's programs, such as `pgbench`.
    pub fn bin(&self, program: &str) -> PathBuf {
        self.access.bin(program)
    }

    /// The server's own temporary directory: data, log and socket.
    pub fn directory(&self) -> &Path {
        self.home.path()
    }

    /// The process id of the running postmaster; `None` when it is stopped.
    pub fn postmaster_pid(&self) -> Option<u32> {
        self.postmaster.as_ref()?;
        let file = fs::read_to_string(self.home.data().join("postmaster.pid")).ok()?;
        file.lines().next()?.trim().parse().ok()
    }

    /// The process that removes [`Self::directory`] after everyone else has ended.
    pub fn sweeper_pid(&self) -> u32 {
        self.home.sweeper_pid()
    }

    fn start_on(
        profile: Profile,
        mut next_port: impl FnMut() -> Result<u16, PgError>,
    ) -> Result<Self, PgError> {
        let binaries = Binaries::find()?;
        let home = Home::create()?;
        let access = PgAccess {
            binaries,
            superuser: random_name("ww_"),
            port: 0,
            directory: home.path().to_owned(),
        };
        let mut server = Self {
            postmaster: None,
            home,
            profile,
            access,
        };
        server.initialise()?;
        let mut tries = 1;
        loop {
            server.access.port = next_port()?;
            match server.boot(&[]) {
                Err(PgError::PortTaken { .. }) if tries < PORT_TRIES_MAX => tries += 1,
                outcome => return outcome.map(|()| server),
            }
        }
    }

    fn initialise(&self) -> Result<(), PgError> {
        let mut initdb = command(self.bin("initdb"), self.home.account());
        initdb
            .arg("--pgdata")
            .arg(self.home.data())
            .args(["--username", &self.access.superuser])
            .args(["--auth", "trust", "--encoding", "UTF8", "--no-locale"])
            .arg("--no-instructions")
            .stdout(self.home.lease()?);
        if self.profile.skips_initial_sync() {
            initdb.arg("--no-sync");
        }
        let object = self.home.data().display().to_string();
        succeed("initdb", object, &mut initdb)
    }

    /// Starts the server on `self.access.port` and waits until it accepts a connection.
    fn boot(&mut self, more_settings: &[(&str, &str)]) -> Result<(), PgError> {
        let log_start = fs::metadata(self.home.log()).map_or(0, |log| log.len());
        let mut postmaster = Postmaster::spawn(
            &self.home,
            &self.bin("postgres"),
            &self.arguments(more_settings),
        )?;
        let deadline = Instant::now() + READY_TIMEOUT;
        loop {
            if let Some(status) = postmaster.ended()? {
                return Err(self.start_failure(log_start, format!("ended at once ({status})")));
            }
            let Err(refusal) = self.access.psql("postgres", "SELECT 1") else {
                self.postmaster = Some(postmaster);
                return Ok(());
            };
            if Instant::now() >= deadline {
                let waited = READY_TIMEOUT.as_secs();
                let what = format!("accepted no connection within {waited} s ({refusal})");
                return Err(self.start_failure(log_start, what));
            }
            std::thread::sleep(RETRY_PAUSE);
        }
    }

    fn arguments(&self, more_settings: &[(&str, &str)]) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["-D".into(), self.home.data().into()];
        let port = self.access.port.to_string();
        let ours = [("listen_addresses", HOST), ("port", &port)];
        for (name, value) in ours
            .iter()
            .chain(self.profile.settings())
            .chain(more_settings)
        {
            arguments.extend(["-c".into(), format!("{name}={value}").into()]);
        }
        let mut socket = OsString::from("unix_socket_directories=");
        socket.push(self.home.path());
        arguments.extend(["-c".into(), socket]);
        arguments
    }

    fn start_failure(&self, log_start: u64, what: String) -> PgError {
        let bytes = fs::read(self.home.log()).unwrap_or_default();
        let start = usize::try_from(log_start).unwrap_or(0).min(bytes.len());
        let log = String::from_utf8_lossy(&bytes[start..]);
        if log.contains("Address already in use") {
            return PgError::PortTaken {
                port: self.access.port,
            };
        }
        let lines: Vec<&str> = log.lines().collect();
        PgError::NotReady {
            directory: self.home.path().to_owned(),
            port: self.access.port,
            what,
            log: lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_lost_race_for_the_port_is_run_again_on_another() {
        let winner = TcpListener::bind((HOST, 0)).unwrap();
        let taken = winner.local_addr().unwrap().port();
        let mut asked = 0;
        let server = PgServer::start_on(Profile::Test, || {
            asked += 1;
            if asked == 1 {
                Ok(taken)
            } else {
                free_loopback_port()
            }
        })
        .unwrap();
        assert_eq!(asked, 2);
        assert_ne!(server.port(), taken);
    }

    #[test]
    fn ports_are_not_tried_for_ever() {
        let winner = TcpListener::bind((HOST, 0)).unwrap();
        let taken = winner.local_addr().unwrap().port();
        let error = PgServer::start_on(Profile::Test, || Ok(taken)).unwrap_err();
        assert!(
            matches!(error, PgError::PortTaken { port } if port == taken),
            "{error}"
        );
    }

    #[test]
    fn a_server_that_does_not_start_shows_its_log() {
        let mut server = PgServer::start(Profile::Test).unwrap();
        server.stop_immediately().unwrap();
        let error = server.boot(&[("shared_buffers", "no-size")]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("invalid value for parameter"), "{text}");
        assert!(
            text.contains(server.directory().to_str().unwrap()),
            "{text}"
        );
    }
}
