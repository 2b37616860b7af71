//! Who this user is as a controller: the key and the agents that are enrolled, in `$XDG_CONFIG_HOME/trunkline`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trunkline_control::{Identity, Peers};

use crate::output::Failure;

/// The key, which is made if there is none, and the agents that are enrolled.
pub(crate) fn open() -> Result<(Arc<Identity>, Peers), Failure> {
    let folder = folder()?;
    let failed = |error| Failure::environment(error);
    let identity = Identity::open(&folder.join("identity")).map_err(failed)?;
    let agents = Peers::open(&folder.join("agents")).map_err(failed)?;
    Ok((Arc::new(identity), agents))
}

/// Where both are kept.
pub(crate) fn folder() -> Result<PathBuf, Failure> {
    let from = |name| std::env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
    let config = from("XDG_CONFIG_HOME").or_else(|| from("HOME").map(|home| home.join(".config")));
    let none = || Failure::environment("neither XDG_CONFIG_HOME nor HOME is set, so keys cannot be stored");
    config.map(|config: PathBuf| Path::join(&config, "trunkline")).ok_or_else(none)
}
