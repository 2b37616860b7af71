//! Keys of the experiment file that get other values on the command line.

use clap::Args;
use trunkline_experiment::Setting;

/// Keys that get other values than the file gives them.
#[derive(Clone, Debug, Default, Args)]
pub struct Settings {
    /// Give a key of the file another value: `link.trunk.rate=5 Mbit/s`; once for each key
    ///
    /// The key is the dotted path that `[sweep]` takes, or one before the first table; `sweep.KEY=[...]` and `limits.KEY=...`
    /// set those. Lists and tables are written as in TOML, texts without quotation marks. A swept key that is set is not
    /// swept. The file stays as it is; the run keeps what was set.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Setting>,

    /// The seed from which all random draws derive, in place of the file's
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<String>,

    /// How long sources send, in place of the file's `duration`
    #[arg(long, value_name = "TIME")]
    pub duration: Option<String>,
}

impl Settings {
    /// All of them, those with options of their own last.
    pub fn all(&self) -> Vec<Setting> {
        let of_option = |key: &str, value: &Option<String>| {
            value.as_ref().map(|value| Setting::of_option(&format!("--{key}"), key, value))
        };
        let own = [of_option("seed", &self.seed), of_option("duration", &self.duration)];
        self.set.iter().cloned().chain(own.into_iter().flatten()).collect()
    }
}
