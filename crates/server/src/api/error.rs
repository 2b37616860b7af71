//! Errors of the API.

use std::fmt;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use trunkline_experiment::Problems;
use trunkline_runner::{LoadError, RunnerError};
use trunkline_store::StoreError;
use utoipa::ToSchema;

use super::Problem;

/// The body of every error response.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorInfo,
}

/// The error.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorInfo {
    /// One sentence for people: what, where, what was expected, what to do.
    pub message: String,
    /// The kind of error, for programs.
    pub kind: ErrorKind,
    /// The problems of the experiment file, if the error is in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub problems: Vec<Problem>,
}

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// What was asked for cannot be done: ask otherwise.
    Input,
    /// The server's machine cannot do it now: disk, sockets, permissions, too much at once.
    Environment,
    /// There is no such thing.
    NotFound,
    /// Not in the state in which it is.
    Conflict,
    /// Not by this client: it has to log in, or comes from another site.
    Unauthorised,
}

/// An error on its way to a client.
#[derive(Clone, Debug)]
pub struct ApiError {
    status: StatusCode,
    info: ErrorInfo,
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.info.message)
    }
}

impl ApiError {
    /// With a status of its own.
    pub fn new(status: StatusCode, kind: ErrorKind, message: impl ToString) -> ApiError {
        ApiError { status, info: ErrorInfo { message: message.to_string(), kind, problems: Vec::new() } }
    }

    /// What was asked for cannot be done: 400.
    pub fn input(message: impl ToString) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, ErrorKind::Input, message)
    }

    /// The machine cannot do it: 500.
    pub fn environment(message: impl ToString) -> ApiError {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorKind::Environment, message)
    }

    /// There is no such thing: 404.
    pub fn not_found(message: impl ToString) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, ErrorKind::NotFound, message)
    }

    /// Not in its state: 409.
    pub fn conflict(message: impl ToString) -> ApiError {
        ApiError::new(StatusCode::CONFLICT, ErrorKind::Conflict, message)
    }

    /// Too much at once: 503.
    pub fn busy(message: impl ToString) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, ErrorKind::Environment, message)
    }

    /// Who it is has to be shown first: 401.
    pub fn unauthorised(message: impl ToString) -> ApiError {
        ApiError::new(StatusCode::UNAUTHORIZED, ErrorKind::Unauthorised, message)
    }

    /// Not from there: 403.
    pub fn forbidden(message: impl ToString) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, ErrorKind::Unauthorised, message)
    }

    /// What is wrong with an experiment file: 400.
    pub fn problems(problems: &Problems) -> ApiError {
        let mut all = problems.iter().map(Problem::from).collect::<Vec<_>>();
        all.sort_by_key(|problem| (problem.file.is_some(), problem.line, problem.column));
        let message = match all.as_slice() {
            [one] => format!("the experiment file has an error in line {}: {}", one.line, one.message),
            _ => format!("the experiment file has {} errors", all.len()),
        };
        let mut error = ApiError::input(message);
        error.info.problems = all;
        error
    }

    /// The body of the response.
    pub fn info(&self) -> &ErrorInfo {
        &self.info
    }

    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.status
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(ErrorBody { error: self.info })).into_response()
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        match error {
            StoreError::NoSuchRun { .. } | StoreError::NoRuns { .. } => ApiError::not_found(error),
            StoreError::Complete { .. } | StoreError::InUse { .. } => ApiError::conflict(error),
            StoreError::NoArchive { .. } => ApiError::input(error),
            error => ApiError::environment(error),
        }
    }
}

impl From<LoadError> for ApiError {
    fn from(error: LoadError) -> ApiError {
        match error {
            LoadError::Invalid(problems) => ApiError::problems(&problems),
            error @ LoadError::Unreadable { .. } => ApiError::input(error),
        }
    }
}

impl From<RunnerError> for ApiError {
    fn from(error: RunnerError) -> ApiError {
        match error {
            RunnerError::Store(error) => error.into(),
            RunnerError::Key(problems) => ApiError::problems(&problems),
            error if error.is_bad_input() => ApiError::input(error),
            error => ApiError::environment(error),
        }
    }
}
