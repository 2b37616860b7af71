//! A store of runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;

use crate::errors;
use crate::run::{self, Run};

/// A folder of runs, or a PostgreSQL server with or without a bucket.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub(crate) struct Store {
    pub(crate) store: Arc<trunkline_store::Store>,
    #[pyo3(get)]
    place: String,
}

#[pymethods]
impl Store {
    /// Opens the store at `place`, a folder or an address; without one, that of the command line: `TRUNKLINE_STORE`, or the user's
    /// data folder.
    #[new]
    #[pyo3(signature = (place = None))]
    fn new(py: Python<'_>, place: Option<PathBuf>) -> PyResult<Store> {
        let place = place.or_else(|| std::env::var_os("TRUNKLINE_STORE").map(PathBuf::from));
        let place = match place {
            Some(place) => place,
            None => data_directory()?,
        };
        let store = py.detach(|| open(&place))?;
        Ok(Store { store: Arc::new(store), place: place.display().to_string() })
    }

    /// The runs, the oldest first, each as JSON.
    fn runs(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let infos = py.detach(|| self.store.runs()).map_err(errors::store)?;
        infos.iter().map(run::json).collect()
    }

    /// The run with this number or folder name, or the latest.
    fn find(&self, selector: &str) -> PyResult<u64> {
        self.store.find(selector).map_err(errors::store)
    }

    /// A run with its results.
    fn run(&self, py: Python<'_>, id: u64) -> PyResult<Run> {
        py.detach(|| Run::read(&self.store, id))
    }
}

fn open(place: &Path) -> PyResult<trunkline_store::Store> {
    let opened = match place.to_str().and_then(trunkline_store::server_name) {
        Some((url, name)) => {
            trunkline_store::Store::connect(url, &data_directory()?.join("servers").join(name))
        }
        None => trunkline_store::Store::open(place),
    };
    opened.map_err(errors::store)
}

/// The user's folder of what the program keeps, as the command line has it.
fn data_directory() -> PyResult<PathBuf> {
    let from = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = from("XDG_DATA_HOME").or_else(|| from("HOME").map(|home| home.join(".local/share")));
    data.map(|data| data.join("trunkline")).ok_or_else(|| {
        errors::environment("neither XDG_DATA_HOME nor HOME is set: choose a store with `store=`")
    })
}
