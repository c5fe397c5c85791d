//! What a test may rely on when it uses `PgServer`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Read;
use std::net::TcpStream;
use std::process::{Command, Output};
use woodward_testkit::postgres::{PgAccess, PgServer, Profile};

fn run(server: &PgAccess, url: &str, sql: &str) -> Output {
    Command::new(server.bin("psql"))
        .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"])
        .args(["--dbname", url, "--command", sql])
        .output()
        .unwrap()
}

fn answer(server: &PgAccess, url: &str, sql: &str) -> String {
    let output = run(server, url, sql);
    assert!(output.status.success(), "{sql}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn each_database_is_empty_and_apart_from_the_others() {
    let server = PgAccess::shared().unwrap();
    let one = server.create_database().unwrap();
    let two = server.create_database().unwrap();
    answer(server, &one, "CREATE TABLE wood (tree text)");
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(answer(server, &one, tables), "1");
    assert_eq!(answer(server, &two, tables), "0");
}

#[test]
fn databases_can_be_created_at_the_same_time() {
    let server = PgAccess::shared().unwrap();
    std::thread::scope(|scope| {
        let creators: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| server.create_database()))
            .collect();
        for creator in creators {
            creator.join().unwrap().unwrap();
        }
    });
}

#[test]
fn all_threads_share_one_server() {
    let ports: Vec<u16> = std::thread::scope(|scope| {
        let askers: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| PgAccess::shared().unwrap().port()))
            .collect();
        askers.into_iter().map(|a| a.join().unwrap()).collect()
    });
    assert!(ports.iter().all(|port| *port == ports[0]), "{ports:?}");
}

#[test]
fn acknowledged_commits_survive_an_immediate_stop() {
    let mut server = PgServer::start(Profile::Test).unwrap();
    let port = server.port();
    let url = server.create_database().unwrap();
    answer(server.access(), &url, "CREATE TABLE wood (tree text)");
    answer(server.access(), &url, "INSERT INTO wood VALUES ('oak')");

    server.stop_immediately().unwrap();
    assert_eq!(server.postmaster_pid(), None);
    assert!(!run(server.access(), &url, "SELECT 1").status.success());

    server.restart().unwrap();
    assert_eq!(server.port(), port);
    assert_eq!(
        answer(server.access(), &url, "SELECT tree FROM wood"),
        "oak"
    );
}

#[test]
fn a_running_server_can_be_restarted() {
    let mut server = PgServer::start(Profile::Test).unwrap();
    let before = server.postmaster_pid().unwrap();
    server.restart().unwrap();
    assert_ne!(server.postmaster_pid().unwrap(), before);
}

#[test]
fn a_dropped_server_ends_its_connections_and_leaves_no_file() {
    let server = PgServer::start(Profile::Test).unwrap();
    let directory = server.directory().to_owned();
    let address = ("127.0.0.1", server.port());
    let mut connection = TcpStream::connect(address).unwrap();
    drop(server);
    assert!(!directory.exists());
    // It may have said goodbye; what counts is that the connection ends, closed or reset.
    let _ = connection.read_to_end(&mut Vec::new());
    assert!(TcpStream::connect(address).is_err(), "nobody is there");
}

#[test]
fn a_bench_server_is_durable_and_a_test_server_is_not() {
    let bench = PgServer::start(Profile::Bench).unwrap();
    let url = bench.create_database().unwrap();
    for (setting, value) in [
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("full_page_writes", "on"),
        ("shared_buffers", "256MB"),
        ("max_connections", "200"),
        ("max_wal_size", "4GB"),
        ("listen_addresses", "127.0.0.1"),
    ] {
        let shown = answer(bench.access(), &url, &format!("SHOW {setting}"));
        assert_eq!(shown, value, "{setting}");
    }

    let test = PgAccess::shared().unwrap();
    let url = test.create_database().unwrap();
    assert_eq!(answer(test, &url, "SHOW fsync"), "off");
    assert_eq!(answer(test, &url, "SHOW synchronous_commit"), "on");
    assert_eq!(answer(test, &url, "SHOW max_connections"), "200");
    assert_eq!(answer(test, &url, "SHOW listen_addresses"), "127.0.0.1");
}
