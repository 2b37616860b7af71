//! The tables and their versions.

use postgres::{Client, Error};

/// One script per version of the schema, each from the version before; never changed once released. What a column holds is
/// said at SQLite's.
const MIGRATIONS: [&str; 4] = [
    "
    CREATE TABLE run (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name TEXT NOT NULL,
        backend TEXT NOT NULL,
        status TEXT NOT NULL,
        repair BOOLEAN NOT NULL,
        started TEXT NOT NULL,
        finished TEXT,
        version TEXT NOT NULL,
        machine TEXT NOT NULL,
        seed BIGINT NOT NULL,
        repetitions BIGINT NOT NULL,
        repetition_length_ns BIGINT NOT NULL,
        folder TEXT NOT NULL,
        file TEXT NOT NULL,
        experiment_hash TEXT NOT NULL,
        text TEXT NOT NULL,
        axes TEXT NOT NULL,
        limits TEXT NOT NULL,
        key TEXT NOT NULL UNIQUE
    );
    CREATE INDEX run_by_experiment ON run (experiment_hash, backend);
    CREATE TABLE point (
        run BIGINT NOT NULL REFERENCES run ON DELETE CASCADE,
        point BIGINT NOT NULL,
        choice TEXT NOT NULL,
        PRIMARY KEY (run, point)
    );
    CREATE TABLE repetition (
        run BIGINT NOT NULL,
        point BIGINT NOT NULL,
        repetition BIGINT NOT NULL,
        partial BOOLEAN NOT NULL,
        summary TEXT,
        PRIMARY KEY (run, point, repetition),
        FOREIGN KEY (run, point) REFERENCES point ON DELETE CASCADE
    );
    CREATE TABLE artefact (
        run BIGINT NOT NULL,
        point BIGINT NOT NULL,
        repetition BIGINT NOT NULL,
        kind TEXT NOT NULL,
        place BIGINT NOT NULL,
        flow TEXT,
        path TEXT NOT NULL,
        PRIMARY KEY (run, point, repetition, kind, place),
        FOREIGN KEY (run, point, repetition) REFERENCES repetition ON DELETE CASCADE
    );
    CREATE TABLE tag (
        run BIGINT NOT NULL REFERENCES run ON DELETE CASCADE,
        tag TEXT NOT NULL,
        PRIMARY KEY (run, tag)
    );
    ",
    // The files of runs that are in a bucket, by their paths in the run's folder.
    "
    CREATE TABLE file (
        run BIGINT NOT NULL REFERENCES run ON DELETE CASCADE,
        path TEXT NOT NULL,
        bytes BIGINT NOT NULL,
        sha256 TEXT NOT NULL,
        PRIMARY KEY (run, path)
    );
    ",
    "
    ALTER TABLE run ADD COLUMN settings TEXT NOT NULL DEFAULT '[]';
    ",
    "
    ALTER TABLE run ADD COLUMN shard TEXT;
    ",
];

/// Two programs that find an old schema at the same time do not both bring it up to date.
const LOCK: i64 = 0x7472_756E_6B6C_696E;

/// Brings the schema up to date. Tables lie in a schema of their own, so that they may share a database with others'. The inner
/// error has the version found and the latest one known, if that is older.
pub(super) fn migrate(client: &mut Client) -> Result<Result<(), (i64, i64)>, Error> {
    let known = MIGRATIONS.len() as i64;
    let mut transaction = client.transaction()?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])?;
    transaction.batch_execute(
        "SET LOCAL client_min_messages = warning;
         CREATE SCHEMA IF NOT EXISTS trunkline;
         SET search_path = trunkline;
         CREATE TABLE IF NOT EXISTS version (version BIGINT NOT NULL);",
    )?;
    let found = transaction.query_opt("SELECT version FROM version", &[])?.map_or(0, |row| row.get(0));
    let Some(scripts) = usize::try_from(found).ok().and_then(|found| MIGRATIONS.get(found..)) else {
        return Ok(Err((found, known)));
    };
    for script in scripts {
        transaction.batch_execute(script)?;
    }
    if !scripts.is_empty() {
        transaction.execute("DELETE FROM version", &[])?;
        transaction.execute("INSERT INTO version VALUES ($1)", &[&known])?;
    }
    transaction.commit()?;
    Ok(Ok(()))
}
