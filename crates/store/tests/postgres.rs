//! The store of a team, on a PostgreSQL server that the test starts and ends.

#![allow(clippy::unwrap_used, reason = "helpers of tests too")]
#![cfg(all(target_os = "linux", feature = "postgres"))]

mod scenarios;

use std::path::Path;

use scenarios::{new_run, record, summary};
use trunkline_metrics::TraceSink as _;
use trunkline_store::{Backend, Imported, NewRun, Status, Store, StoreError, StoredPoint};
use trunkline_testkit::postgres::PostgresServer;

fn open(server: &PostgresServer, files: &Path) -> Store {
    Store::connect(&server.url(), files).unwrap()
}

#[test]
fn a_server_keeps_what_a_folder_keeps() {
    let Some(server) = PostgresServer::start() else { return };
    let files = tempfile::tempdir().unwrap();
    scenarios::written_in_parallel_interrupted_and_resumed(files.path(), &|| open(&server, files.path()));
}

#[test]
fn runs_of_a_team_are_found_marked_and_taken_elsewhere() {
    let Some(server) = PostgresServer::start() else { return };
    let (here, there, own) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    scenarios::found_compared_and_removed(here.path(), &|| open(&server, here.path()));

    // Two hosts with folders of their own: a run that one measures is left alone by the other.
    let (one, other) = (open(&server, here.path()), open(&server, there.path()));
    let run = one.begin(new_run(Backend::Sim, "shared = 1\n")).unwrap();
    let id = run.info().unwrap().id;
    assert_eq!(other.run(id).unwrap().info.status, Status::Running);
    assert!(matches!(other.resume(id), Err(StoreError::InUse { .. })));
    assert!(matches!(other.remove(id), Err(StoreError::InUse { .. })));
    assert_eq!(open(&server, there.path()).run(id).unwrap().info.status, Status::Running);
    let mut writer = run.begin_repetition(0, 0, &["voice"]).unwrap();
    writer.write(0, &record(1));
    writer.close().unwrap().finish(&summary(false), &[]).unwrap();
    run.finish(Status::Partial).unwrap();
    other.tag(id, "seen elsewhere", true).unwrap();
    assert_eq!(one.run(id).unwrap().info.tags, ["seen elsewhere"]);
    assert_eq!(
        one.run(id).unwrap().points,
        with_folder(other.run(id).unwrap().points, there.path(), here.path())
    );

    // From the team's store into one's own and back: it is known by its key.
    let mut archive = Vec::new();
    one.export(id, &mut archive).unwrap();
    let own = Store::open(own.path()).unwrap();
    assert_eq!(own.import(archive.as_slice()).unwrap(), Imported::New(1));
    assert_eq!(other.import(archive.as_slice()).unwrap(), Imported::Known(id));
    assert_eq!(own.run(1).unwrap().info.tags, ["seen elsewhere"]);
}

#[test]
fn a_run_of_many_points_is_walked_in_their_order() {
    let Some(server) = PostgresServer::start() else { return };
    let (files, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let walked = |store: &Store| {
        // As of a search, which does not find its points in the order of their values.
        let points: Vec<(u32, Vec<usize>)> =
            (0..600).map(|point| (point, vec![599 - point as usize])).collect();
        let run = store.begin(NewRun { points, ..new_run(Backend::Sim, "a = 1\n") }).unwrap();
        for point in [599, 300, 299, 0] {
            let mut writer = run.begin_repetition(point, 0, &["voice"]).unwrap();
            writer.write(0, &record(1));
            writer.close().unwrap().finish(&summary(false), &[]).unwrap();
        }
        let id = run.finish(Status::Partial).unwrap().id;
        let mut walked = Vec::new();
        store.walk(id, |point| walked.push(point)).unwrap();
        assert_eq!(store.run(id).unwrap().points, walked);
        walked
    };
    let found = walked(&open(&server, files.path()));
    assert!(found.iter().map(|point| point.choice[0]).eq(0..600));
    let traces = |index: u32| usize::from([599, 300, 299, 0].contains(&index));
    let have = |point: &StoredPoint| point.repetitions.iter().map(|one| one.traces.len()).sum::<usize>();
    assert!(found.iter().all(|point| have(point) == traces(point.index)));
    let alone = walked(&Store::open(own.path()).unwrap());
    assert_eq!(with_folder(found, files.path(), own.path()), alone);
}

fn with_folder(mut points: Vec<StoredPoint>, from: &Path, to: &Path) -> Vec<StoredPoint> {
    for repetition in points.iter_mut().flat_map(|point| &mut point.repetitions) {
        for (_, path) in &mut repetition.traces {
            *path = to.join(path.strip_prefix(from).unwrap());
        }
    }
    points
}

/// The lock goes with the connection: who opens next finds the run interrupted.
#[test]
fn a_run_whose_process_died_is_partial() {
    let Some(server) = PostgresServer::start() else { return };
    let files = tempfile::tempdir().unwrap();
    let store = open(&server, files.path());
    let run = store.begin(new_run(Backend::Sim, "a = 1\n")).unwrap();
    // Never dropped, as in a process that is killed; the server then ends its sessions.
    std::mem::forget(run);
    let mut admin = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = 'tester'";
    admin.batch_execute(end).unwrap();
    let again = open(&server, files.path());
    assert_eq!(again.runs().unwrap()[0].status, Status::Partial);
    assert!(again.resume(1).is_ok());
}

#[test]
fn addresses_that_lead_nowhere_are_told_without_their_password() {
    let files = tempfile::tempdir().unwrap();
    let error = Store::connect("postgresql://eve:secret@host:port/x", files.path()).unwrap_err();
    assert!(matches!(error, StoreError::Address { .. }) && !error.to_string().contains("secret"), "{error}");
    let nowhere = format!("postgresql://eve:secret@localhost/x?host={}", files.path().display());
    let error = Store::connect(&nowhere, files.path()).unwrap_err();
    assert!(matches!(error, StoreError::Database { .. }) && !error.to_string().contains("secret"), "{error}");
}

#[test]
fn connections_are_encrypted_as_the_address_says() {
    let certified = |name: &str| rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let (own, other) = (certified("127.0.0.1"), certified("127.0.0.2"));
    // It lets nobody in who does not encrypt.
    let Some(server) = PostgresServer::start_encrypted(&own.cert.pem(), &own.signing_key.serialize_pem())
    else {
        return;
    };
    let files = tempfile::tempdir().unwrap();
    let roots = |name: &str, certificate: &str| {
        let path = files.path().join(name);
        std::fs::write(&path, certificate).unwrap();
        path.display().to_string()
    };
    let (own, other) = (roots("own.pem", &own.cert.pem()), roots("other.pem", &other.cert.pem()));
    let open = |parameters: &str| Store::connect(&server.loopback_url(parameters), files.path());
    for parameters in
        ["", "sslmode=prefer", "sslmode=require", &format!("sslmode=verify-full&sslrootcert={own}")]
    {
        let run = open(parameters).unwrap().begin(new_run(Backend::Sim, "a = 1\n")).unwrap();
        run.finish(Status::Partial).unwrap();
    }
    assert_eq!(open("").unwrap().runs().unwrap().len(), 4);
    for parameters in [
        "sslmode=disable",
        "sslmode=verify-full",
        &format!("sslmode=verify-full&sslrootcert={other}"),
        &format!("sslmode=require&sslrootcert={other}"),
    ] {
        let error = open(parameters).unwrap_err();
        assert!(matches!(error, StoreError::Database { .. }), "{parameters}: {error}");
        let is_plain = parameters == "sslmode=disable";
        let expected = if is_plain { "no encryption" } else { "certificate" };
        assert!(error.to_string().contains(expected), "{parameters}: {error}");
    }
}
