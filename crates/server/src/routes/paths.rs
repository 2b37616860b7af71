//! Learned paths: those of the library, and those in the folder of files.

use std::path::Path as FilePath;

use axum::Json;
use axum::extract::State;
use trunkline_learn::library::{Description, LearnedPath, LibraryError, PathDetails, names};

use crate::api::{ApiError, Paths};
use crate::app::{App, Shared};
use crate::extract::Path;

/// Maximum number of files of the folder that are read: it may have other files than paths.
const MOST_FILES: usize = 1_000;

/// Lists the learned paths: link profiles of the library, and those with directions in the folder of files.
#[utoipa::path(get, path = "/paths", tag = "experiments", responses((status = 200, body = Paths)))]
pub(crate) async fn list(State(app): Shared) -> Result<Json<Paths>, ApiError> {
    app.blocking(|app| Ok(Json(all(app)?))).await
}

/// A learned path with its values, their intervals and the evidence for them.
#[utoipa::path(
    get, path = "/paths/{name}", tag = "experiments", params(("name" = String, Path, description = "The path")),
    responses((status = 200, body = PathDetails))
)]
pub(crate) async fn path(
    State(app): Shared,
    Path(name): Path<String>,
) -> Result<Json<PathDetails>, ApiError> {
    app.blocking(move |app| Ok(Json(described(app, &name)?.details()))).await
}

fn all(app: &App) -> Result<Paths, ApiError> {
    let mut found = Paths { paths: own(app)?, problems: Vec::new() };
    let library = trunkline_runner::library();
    for name in library.map_or_else(|| Ok(Vec::new()), names).map_err(ApiError::environment)? {
        match library.map(|folder| Description::read(folder, &name)) {
            Some(Ok(path)) => found.paths.push(path.summary()),
            Some(Err(error)) => found.problems.push(error.to_string()),
            None => {}
        }
    }
    found.paths.sort_by(|a, b| a.name.cmp(&b.name));
    // Experiments find that of the folder first.
    found.paths.dedup_by(|later, first| later.name == first.name);
    Ok(found)
}

/// The paths in the folder of files.
fn own(app: &App) -> Result<Vec<LearnedPath>, ApiError> {
    let names = names(&app.files).map_err(ApiError::environment)?;
    let read = names.iter().take(MOST_FILES).filter_map(|name| served(&app.files, name).ok());
    Ok(read.map(|path| path.summary()).collect())
}

/// The description of a path in the folder of files.
fn served(folder: &FilePath, name: &str) -> Result<Description, LibraryError> {
    let path = folder.join(format!("{name}.toml"));
    let unknown = || LibraryError::Unknown { name: name.to_owned(), folder: folder.to_owned() };
    // A link may lead out of the folder, and a pipe would be waited for.
    if !path.symlink_metadata().is_ok_and(|file| file.is_file()) {
        return Err(unknown());
    }
    Description::read(folder, name).and_then(|path| match path.has_directions() {
        true => Ok(path),
        false => Err(unknown()),
    })
}

fn described(app: &App, name: &str) -> Result<Description, ApiError> {
    let library = || trunkline_runner::library().map(|folder| Description::read(folder, name));
    let found = served(&app.files, name).map_or_else(|error| library().unwrap_or(Err(error)), Ok);
    found.map_err(|error| match error {
        LibraryError::Unknown { .. } => {
            ApiError::not_found(format_args!("there is no learned path `{}`", name.escape_debug()))
        }
        error => ApiError::environment(error),
    })
}
