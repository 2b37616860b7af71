PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE artefact (
        run INTEGER NOT NULL,
        point INTEGER NOT NULL,
        repetition INTEGER NOT NULL,
        kind TEXT NOT NULL,
        place INTEGER NOT NULL,
        flow TEXT,
        path TEXT NOT NULL,
        PRIMARY KEY (run, point, repetition, kind, place),
        FOREIGN KEY (run, point, repetition) REFERENCES repetition ON DELETE CASCADE
    ) WITHOUT ROWID;
INSERT INTO "artefact" VALUES(1,0,0,'audio',0,NULL,'audio/p000-r00/voice-0-0.wav');
INSERT INTO "artefact" VALUES(1,0,0,'trace',0,'voice','traces/p000-r00-voice.parquet');
INSERT INTO "artefact" VALUES(1,0,1,'audio',0,NULL,'audio/p000-r01/voice-0-0.wav');
INSERT INTO "artefact" VALUES(1,0,1,'trace',0,'voice','traces/p000-r01-voice.parquet');
INSERT INTO "artefact" VALUES(1,1,0,'audio',0,NULL,'audio/p001-r00/voice-0-0.wav');
INSERT INTO "artefact" VALUES(1,1,0,'trace',0,'voice','traces/p001-r00-voice.parquet');
INSERT INTO "artefact" VALUES(1,1,1,'audio',0,NULL,'audio/p001-r01/voice-0-0.wav');
INSERT INTO "artefact" VALUES(1,1,1,'trace',0,'voice','traces/p001-r01-voice.parquet');
CREATE TABLE point (
        run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
        point INTEGER NOT NULL,
        choice TEXT NOT NULL,
        PRIMARY KEY (run, point)
    ) WITHOUT ROWID;
INSERT INTO "point" VALUES(1,0,'[0]');
INSERT INTO "point" VALUES(1,1,'[1]');
CREATE TABLE repetition (
        run INTEGER NOT NULL,
        point INTEGER NOT NULL,
        repetition INTEGER NOT NULL,
        partial INTEGER NOT NULL,
        summary TEXT,
        PRIMARY KEY (run, point, repetition),
        FOREIGN KEY (run, point) REFERENCES point ON DELETE CASCADE
    ) WITHOUT ROWID;
INSERT INTO "repetition" VALUES(1,0,0,0,'{"flows":[],"links":[],"stalls":null,"duration":30000000000,"cpu":null,"partial":false}');
INSERT INTO "repetition" VALUES(1,0,1,0,'{"flows":[],"links":[],"stalls":null,"duration":30000000000,"cpu":null,"partial":false}');
INSERT INTO "repetition" VALUES(1,1,0,0,'{"flows":[],"links":[],"stalls":null,"duration":30000000000,"cpu":null,"partial":false}');
INSERT INTO "repetition" VALUES(1,1,1,0,'{"flows":[],"links":[],"stalls":null,"duration":30000000000,"cpu":null,"partial":false}');
CREATE TABLE run (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        backend TEXT NOT NULL,
        status TEXT NOT NULL,
        repair INTEGER NOT NULL,
        started TEXT NOT NULL,
        finished TEXT,
        version TEXT NOT NULL,
        machine TEXT NOT NULL,
        seed INTEGER NOT NULL,
        repetitions INTEGER NOT NULL,
        repetition_length_ns INTEGER NOT NULL,
        folder TEXT NOT NULL,
        file TEXT NOT NULL,
        experiment_hash TEXT NOT NULL,
        text TEXT NOT NULL,
        axes TEXT NOT NULL,
        limits TEXT NOT NULL
    );
INSERT INTO "run" VALUES(1,'Voice beside bulk!','sim','complete',0,'2026-11-21T14:14:19.175943622Z','2026-11-21T14:14:20.31944228Z','0.1.0','test',-1,2,30000000000,'1-voice-beside-bulk-sim','voice.toml','4941d2f9c7f72d90442651af95320065','a = 1
','[{"key":"flow.voice.count","values":["1","2"],"numbers":[1.0,2.0],"unit":""}]','[]');
CREATE INDEX run_by_experiment ON run (experiment_hash, backend);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('run',1);
COMMIT;
PRAGMA user_version = 1;
