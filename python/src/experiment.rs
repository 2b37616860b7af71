//! An experiment: a text with settings, as the command line has them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use trunkline_experiment::{self as model, Files, FilesError, NamedFiles, Problems, Setting};
use trunkline_runner::DirectoryFiles;
use trunkline_store::Backend;

use crate::custom::{self, Failure, Functions};
use crate::errors;
use crate::measure::Means;

/// A text, the name under which problems report it, and the settings that change it.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub(crate) struct Experiment {
    text: String,
    /// The file as the user named it.
    file: String,
    /// Files that the text names, where they travel with it (to another process); otherwise they lie beside the file.
    named: Option<NamedFiles>,
    state: Mutex<State>,
}

struct State {
    settings: Vec<Setting>,
    functions: Functions,
    /// The validated experiment, as long as nothing of it changes, and what its functions raise.
    read: Option<(Arc<model::Experiment>, Failure)>,
}

impl State {
    fn new(settings: Vec<Setting>, read: Option<model::Experiment>) -> Mutex<State> {
        let read = read.map(|read| (Arc::new(read), Failure::default()));
        Mutex::new(State { settings, functions: Functions::new(), read })
    }
}

impl Experiment {
    /// The experiment with its settings, validated. Files that lie beside the text are read each time, since they can change.
    pub(crate) fn read(&self, py: Python<'_>) -> PyResult<Arc<model::Experiment>> {
        Ok(self.with_failure(py)?.0)
    }

    /// Measures something of the experiment, as it is validated. An exception of a function of its own is raised in place of the
    /// error that it leads to.
    pub(crate) fn measured<R>(
        &self,
        py: Python<'_>,
        measure: impl FnOnce(&model::Experiment) -> PyResult<R>,
    ) -> PyResult<R> {
        let (read, failure) = self.with_failure(py)?;
        let measured = measure(&read);
        let Some(raised) = failure.raised(py) else { return measured };
        // The next run begins without it.
        self.state(py).read = None;
        Err(raised)
    }

    fn with_failure(&self, py: Python<'_>) -> PyResult<(Arc<model::Experiment>, Failure)> {
        // Python makes its exception when the state is free again: other threads can run meanwhile, and want it.
        let read = self.validate(py, &mut self.state(py));
        read.map_err(|problems| errors::invalid(&problems))
    }

    fn validate(
        &self,
        py: Python<'_>,
        state: &mut State,
    ) -> Result<(Arc<model::Experiment>, Failure), Problems> {
        let is_current = |read: &model::Experiment| self.named.is_some() || read.files.by_path().is_empty();
        if let Some((read, failure)) = state.read.as_ref().filter(|(read, _)| is_current(read)) {
            return Ok((Arc::clone(read), failure.clone()));
        }
        let mut read = model::Experiment::parse_with(&self.text, &self.file, self, &state.settings)?;
        let failure = match state.functions.is_empty() {
            true => Failure::default(),
            false => custom::provide(py, &mut read, &state.functions),
        };
        let (read, failure) = state.read.insert((Arc::new(read), failure));
        Ok((Arc::clone(read), failure.clone()))
    }

    /// The files that the text may name.
    pub(crate) fn files(&self) -> Arc<dyn Files + Send + Sync> {
        match &self.named {
            Some(named) => Arc::new(named.clone()),
            None => Arc::new(DirectoryFiles::beside(Path::new(&self.file))),
        }
    }

    /// The file's absolute path, which a run records.
    pub(crate) fn path(&self) -> PathBuf {
        let file = Path::new(&self.file);
        std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf())
    }

    /// An experiment that was read elsewhere, with the files that it names.
    pub(crate) fn of(read: model::Experiment, file: String) -> Experiment {
        let (text, named) = (read.text.clone(), Some(read.files.clone()));
        Experiment { text, file, named, state: State::new(Vec::new(), Some(read)) }
    }

    /// The file as the user named it.
    pub(crate) fn named_file(&self) -> &str {
        &self.file
    }

    fn state(&self, py: Python<'_>) -> MutexGuard<'_, State> {
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files for Experiment {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        self.files().read(path)
    }
}

#[pymethods]
impl Experiment {
    #[new]
    #[pyo3(signature = (text, file, settings = Vec::new(), named = None))]
    fn new(
        text: String,
        file: String,
        settings: Vec<String>,
        named: Option<std::collections::BTreeMap<String, Vec<u8>>>,
    ) -> PyResult<Experiment> {
        let settings = settings.iter().map(|text| text.parse()).collect::<Result<_, String>>();
        let state = State::new(settings.map_err(errors::bad_input)?, None);
        Ok(Experiment { text, file, named: named.map(NamedFiles::from), state })
    }

    /// An experiment that another process has validated, with the files that it names.
    #[staticmethod]
    fn validated(
        text: &str,
        file: String,
        named: std::collections::BTreeMap<String, Vec<u8>>,
    ) -> PyResult<Experiment> {
        let read = model::Experiment::parse_validated(text, &file, &NamedFiles::from(named));
        Ok(Experiment::of(read.map_err(|problems| errors::invalid(&problems))?, file))
    }

    /// Reads and validates a file.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Experiment> {
        let read = trunkline_runner::load(&path, &[]).map_err(|error| errors::load(&error))?;
        let file = path.display().to_string();
        let text = read.text.clone();
        let state = State::new(Vec::new(), Some(read));
        Ok(Experiment { text, file, named: None, state })
    }

    /// Sets a key, as `--set KEY=VALUE` does.
    fn set(&self, py: Python<'_>, setting: &str) -> PyResult<()> {
        let setting: Setting = setting.parse().map_err(errors::bad_input)?;
        let mut state = self.state(py);
        // Setting a key again replaces it, where nothing in between can depend on the order.
        if state.settings.last().is_some_and(|last| last.key() == setting.key()) {
            state.settings.pop();
        }
        state.settings.push(setting);
        state.read = None;
        Ok(())
    }

    /// Provides the function of a custom source or loss model, by its key in the file.
    fn provide(&self, py: Python<'_>, key: String, function: Py<PyAny>) {
        let mut state = self.state(py);
        state.functions.insert(key, function);
        state.read = None;
    }

    /// The functions that were provided.
    #[getter]
    fn functions(&self, py: Python<'_>) -> Functions {
        let state = self.state(py);
        state.functions.iter().map(|(key, function)| (key.clone(), function.clone_ref(py))).collect()
    }

    #[getter]
    fn file(&self) -> &str {
        &self.file
    }

    /// The text without the settings.
    #[getter]
    fn source(&self) -> &str {
        &self.text
    }

    #[getter(settings)]
    fn written_settings(&self, py: Python<'_>) -> Vec<String> {
        self.state(py).settings.iter().map(ToString::to_string).collect()
    }

    /// The text with the settings, which is what a run stores.
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.read(py)?.text.clone())
    }

    /// The files that the text names, by path.
    fn named(&self, py: Python<'_>) -> PyResult<std::collections::BTreeMap<String, Vec<u8>>> {
        Ok(self.read(py)?.files.by_path().clone())
    }

    /// Validates the experiment for a backend. Returns the name, the swept keys with their values, the number of points
    /// and of repetitions, and why other backends refuse it.
    fn check(&self, py: Python<'_>, on: &str) -> PyResult<Checked> {
        let experiment = self.read(py)?;
        let backend = backend(on)?;
        let means = Means::of_check()?;
        let request = means.request(&experiment, Path::new(&self.file), backend, 1);
        trunkline_runner::precheck(&request).map_err(errors::runner)?;
        let refused = trunkline_runner::refusals(&experiment).into_iter();
        let refused = refused.filter_map(|(backend, reason)| Some((backend.name().to_owned(), reason?)));
        let length: f64 = experiment.points.lengths().map(|length| length.as_secs_f64()).sum();
        Ok((
            experiment.name.clone(),
            experiment.axes.iter().map(|axis| (axis.key.clone(), axis.values.clone())).collect(),
            experiment.points.len(),
            experiment.repetitions,
            length * f64::from(experiment.repetitions),
            refused.collect(),
        ))
    }
}

/// Name, axes, points, repetitions, seconds of all measurements together, refusing backends with the reasons.
type Checked = (String, Vec<(String, Vec<String>)>, usize, u32, f64, Vec<(String, String)>);

/// The backend of that name.
pub(crate) fn backend(on: &str) -> PyResult<Backend> {
    let found = Backend::ALL.into_iter().find(|backend| backend.name() == on);
    found.ok_or_else(|| {
        errors::bad_input(format_args!("unknown backend `{on}`; expected `sim`, `wire` or `live`"))
    })
}
