//! What comes with a request, refused as the API refuses.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use serde::de::DeserializeOwned;

use crate::api::{ApiError, ErrorKind};

/// So long a body may take to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// A JSON body.
pub(crate) struct Body<T>(pub(crate) T);

/// The parts of an address.
pub(crate) struct Path<T>(pub(crate) T);

/// What follows the question mark.
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, ApiError> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        // What a form of another site can send is something else.
        if kind.and_then(|kind| kind.split(';').next()).is_none_or(|kind| kind.trim() != "application/json") {
            return Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                ErrorKind::Input,
                "the body must be JSON: send it with `Content-Type: application/json`",
            ));
        }
        let bytes =
            tokio::time::timeout(PATIENCE, Bytes::from_request(request, state)).await.map_err(|_| {
                ApiError::new(
                    StatusCode::REQUEST_TIMEOUT,
                    ErrorKind::Input,
                    format_args!("the body did not arrive within {} s", PATIENCE.as_secs()),
                )
            })?;
        let bytes = bytes.map_err(|error| match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE => ApiError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                ErrorKind::Input,
                "the body is too large: the maximum is 8 MiB",
            ),
            _ => ApiError::input(format_args!("the body cannot be read: {}", error.body_text())),
        })?;
        let wrong = |why: &str| ApiError::input(format_args!("invalid body: {why}"));
        // A list would be taken for the fields in their order.
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err(wrong("it must be a JSON object"));
        }
        serde_json::from_slice(&bytes).map(Body).map_err(|error| wrong(&error.to_string()))
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Path<T>, ApiError> {
        match axum::extract::Path::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(value)) => Ok(Path(value)),
            Err(PathRejection::FailedToDeserializePathParams(error)) => Err(ApiError::not_found(
                format_args!("there is no `{}`: {}", parts.uri.path(), error.body_text()),
            )),
            Err(error) => Err(ApiError::input(error.body_text())),
        }
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Query<T>, ApiError> {
        match axum::extract::Query::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(value)) => Ok(Query(value)),
            Err(error @ QueryRejection::FailedToDeserializeQueryString(_)) => {
                Err(ApiError::input(format_args!("invalid query: {}", error.body_text())))
            }
            Err(error) => Err(ApiError::input(error.body_text())),
        }
    }
}
