//! A folder and a store of its own for each test, and the program run in it.

#![allow(dead_code, unreachable_pub, reason = "every test program uses a part of this")]

pub mod json_schema;
#[cfg(target_os = "linux")]
pub mod terminal;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;
use trunkline_testkit::skips::{Missing, skip_without};

/// A fresh folder with an experiment in it, and a store that does not exist yet.
pub struct Bench {
    folder: TempDir,
}

impl Bench {
    pub fn new() -> Bench {
        Bench { folder: tempfile::tempdir().expect("a temporary folder can be made") }
    }

    /// One with a file whose links can be on a wire; `None`, as a skip, where no wire can be.
    pub fn with_wire(name: &str, text: impl AsRef<[u8]>) -> Option<Bench> {
        let bench = Bench::new();
        bench.write(name, text);
        let tried = bench.run(&["wire", name, "--", "true"]);
        if tried.err.contains("does not allow you to create network namespaces") {
            skip_without(Missing::Namespaces, &tried.err);
            return None;
        }
        tried.ok();
        Some(bench)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn store(&self) -> PathBuf {
        self.path("store")
    }

    /// Writes a file into the folder.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("the folder can be written");
        path
    }

    /// The program with these arguments, in the folder, with the store.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
        command.args(arguments).current_dir(self.folder.path()).env("TRUNKLINE_STORE", self.store());
        // Wires and keys are written down in the folder too.
        command.env("XDG_STATE_HOME", self.path("state"));
        command.env("XDG_RUNTIME_DIR", self.path("")).env_remove("RUST_BACKTRACE").stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().expect("the program starts"))
    }

    /// Starts it.
    pub fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program starts")
    }

    /// The folder of a run.
    pub fn run_folder(&self, number: usize) -> PathBuf {
        let prefix = format!("{number}-");
        let mut runs = std::fs::read_dir(self.store().join("runs")).expect("there are runs").flatten();
        let found = runs.find(|run| run.file_name().to_string_lossy().starts_with(&prefix));
        found.unwrap_or_else(|| panic!("run {number} has no folder")).path()
    }
}

/// What a finished program printed, and its exit code.
#[derive(Debug, Default)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    /// Asserts success.
    #[track_caller]
    pub fn ok(self) -> Ran {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self
    }

    /// Standard output as one object of JSON, which is as its schema says.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        let mut all = self.all_json();
        assert_eq!(all.len(), 1, "one object: {self:#?}");
        all.remove(0)
    }

    /// Standard output as objects of JSON, which are as their schemas say.
    #[track_caller]
    pub fn all_json(&self) -> Vec<serde_json::Value> {
        let all: Result<Vec<_>, _> = serde_json::Deserializer::from_str(&self.out).into_iter().collect();
        let all = all.unwrap_or_else(|e| panic!("{e}: {self:#?}"));
        all.iter().for_each(assert_described);
        all
    }
}

/// Asserts that the committed schema of JSON outputs describes every key of this object.
#[track_caller]
pub fn assert_described(object: &serde_json::Value) {
    let schema = include_str!("../../../../docs/reference/json-output.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).expect("the schema is JSON");
    let kind = &object["kind"];
    let layout = schema["$defs"].as_object().and_then(|all| {
        all.values().find(|one| !kind.is_null() && one["properties"]["kind"]["const"] == *kind)
    });
    let layout = layout.unwrap_or_else(|| panic!("no layout is named {kind}: {object:#}"));
    let problems = json_schema::problems(&schema, layout, object);
    assert!(problems.is_empty(), "{kind}: {problems:#?}");
}

/// Every file below a folder.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { open.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}
