//! Which address does what.

mod agents;
mod drafts;
mod events;
mod jobs;
mod paths;
pub(crate) mod results;
mod rewind;
mod runs;
mod saved;
mod server;
mod sound;
mod traces;

use std::sync::Arc;

use axum::Router;
use utoipa::OpenApi as _;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::{OpenApi, Ref, ResponseBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::{self, ApiError, ErrorKind};
use crate::app::App;
use crate::{compare, drawing, forms, papers, predict};

pub use saved::saved_run;

/// Prefix of all paths.
pub(crate) const BASE: &str = "/api/v1";

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Trunkline",
        description = "Experiments drawn, checked, run, watched and compared. Values of experiment files are strings with \
            units, as in the file; figures are numbers in base units: seconds, bits per second, bytes, shares from 0 to 1.",
        license(name = "MIT OR Apache-2.0")
    ),
    servers((url = "/api/v1")),
    components(schemas(
        api::ErrorBody, trunkline_editor::form::Alternative, api::Records, api::RepetitionDone, api::Warning, api::End, api::JobResult,
    )),
    tags(
        (name = "experiments", description = "Experiment files: checked, drawn, changed"),
        (name = "runs", description = "Stored runs and their results"),
        (name = "jobs", description = "Jobs of the server"),
        (name = "studies", description = "Published studies"),
        (name = "agents", description = "Agents on other hosts"),
        (name = "server", description = "The server itself"),
    )
)]
struct Description;

/// The handlers and their OpenAPI document.
pub(crate) fn router() -> (Router<Arc<App>>, OpenApi) {
    let (router, mut document) = OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(server::server))
        .routes(routes!(server::document))
        .routes(routes!(server::login))
        .routes(routes!(server::logout))
        .routes(routes!(forms::schema))
        .routes(routes!(drawing::check))
        .routes(routes!(drawing::drawing))
        .routes(routes!(drawing::edit))
        .routes(routes!(drawing::examples))
        .routes(routes!(predict::predict))
        .routes(routes!(drafts::list))
        .routes(routes!(paths::list))
        .routes(routes!(paths::path))
        .routes(routes!(drafts::draft, drafts::keep, drafts::remove))
        .routes(routes!(runs::list, runs::begin))
        .routes(routes!(runs::import))
        .routes(routes!(runs::run, runs::remove))
        .routes(routes!(runs::tag, runs::untag))
        .routes(routes!(runs::resume))
        .routes(routes!(runs::stop))
        .routes(routes!(results::report))
        .routes(routes!(saved::saved))
        .routes(routes!(results::export))
        .routes(routes!(results::csv))
        .routes(routes!(results::json))
        .routes(routes!(results::figures))
        .routes(routes!(results::figure))
        .routes(routes!(results::audio))
        .routes(routes!(traces::parquet))
        .routes(routes!(traces::latency))
        .routes(routes!(traces::cdf))
        .routes(routes!(traces::over_time))
        .routes(routes!(sound::sound))
        .routes(routes!(sound::pieces))
        .routes(routes!(sound::moment))
        .routes(routes!(rewind::rewind))
        .routes(routes!(compare::compare))
        .routes(routes!(compare::definitions))
        .routes(routes!(jobs::list))
        .routes(routes!(jobs::job))
        .routes(routes!(jobs::stop))
        .routes(routes!(jobs::result))
        .routes(routes!(jobs::prediction))
        .routes(routes!(events::events))
        .routes(routes!(papers::list))
        .routes(routes!(papers::study, papers::repeat))
        .routes(routes!(papers::figure))
        .routes(routes!(papers::file))
        .routes(routes!(forms::plan))
        .routes(routes!(forms::probe))
        .routes(routes!(agents::list, agents::enrol))
        .routes(routes!(agents::forget))
        .split_for_parts();
    document.info.version = env!("CARGO_PKG_VERSION").to_owned();
    describe_errors(&mut document);
    let router = router.method_not_allowed_fallback(async || {
        ApiError::new(
            axum::http::StatusCode::METHOD_NOT_ALLOWED,
            ErrorKind::Input,
            "this address does not support this method",
        )
    });
    (router, document)
}

/// The OpenAPI document.
pub fn openapi() -> OpenApi {
    router().1
}

/// Adds the common error responses to every operation.
fn describe_errors(document: &mut OpenApi) {
    for item in document.paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete]
            .into_iter()
            .filter_map(Option::as_mut);
        for operation in operations {
            let body = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorBody"))).build();
            let response =
                ResponseBuilder::new().description("The error").content("application/json", body).build();
            operation.responses.responses.insert("default".to_owned(), response.into());
        }
    }
}
