//! Keys of the experiment file that are overridden on the command line.

use clap::Args;
use trunkline_experiment::Setting;

/// Keys of the file that are overridden.
#[derive(Clone, Debug, Default, Args)]
pub struct Settings {
    /// Override a key of the file, such as `link.trunk.rate=5 Mbit/s`; can be repeated
    ///
    /// The key is a dotted path as in `[sweep]`, or a top-level key; `sweep.KEY=[...]` and `limits.KEY=...` set a sweep or a
    /// limit. Lists and tables are written as in TOML, strings without quotation marks. Setting a swept key replaces its
    /// sweep. The file does not change; the run records the setting.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Setting>,

    /// The random seed, instead of the file's
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<String>,

    /// Time for which sources send, instead of the file's `duration`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
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
