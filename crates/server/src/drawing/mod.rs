//! Experiment files: checked, drawn and changed.

mod check;
mod examples;

use axum::Json;
use axum::extract::State;
use trunkline_experiment::edit::EditError;

use crate::api::{ApiError, Checked, Drawn, Edited, Edits, Example, Text};
use crate::app::Shared;
use crate::extract::Body;

/// Whether an experiment file can be run, and what it would do.
#[utoipa::path(post, path = "/check", tag = "experiments", request_body = Text, responses((status = 200, body = Checked)))]
pub(crate) async fn check(
    State(app): Shared,
    Body(Text { text }): Body<Text>,
) -> Result<Json<Checked>, ApiError> {
    app.blocking(move |app| Ok(Json(check::checked(&text, &app.files())))).await
}

/// The drawing of an experiment file.
#[utoipa::path(post, path = "/drawing", tag = "experiments", request_body = Text, responses((status = 200, body = Drawn)))]
pub(crate) async fn drawing(
    State(app): Shared,
    Body(Text { text }): Body<Text>,
) -> Result<Json<Drawn>, ApiError> {
    app.blocking(move |app| {
        let drawing = trunkline_editor::drawing(&text).ok();
        let problems = check::problems(&text, &app.files());
        Ok(Json(Drawn { drawing, problems, places: trunkline_editor::key_places(&text) }))
    })
    .await
}

/// Changes an experiment file; its comments and its layout are kept.
#[utoipa::path(post, path = "/edit", tag = "experiments", request_body = Edits, responses((status = 200, body = Edited)))]
pub(crate) async fn edit(
    State(app): Shared,
    Body(Edits { text, edits }): Body<Edits>,
) -> Result<Json<Edited>, ApiError> {
    app.blocking(move |app| {
        let text = trunkline_editor::apply(&text, edits).map_err(|error| match &error {
            EditError::NotToml(problems) => ApiError::problems(problems),
            _ => ApiError::input(error),
        })?;
        let drawing = trunkline_editor::drawing(&text).ok();
        let problems = check::problems(&text, &app.files());
        let places = trunkline_editor::key_places(&text);
        Ok(Json(Edited { text, problems, places, drawing }))
    })
    .await
}

/// Lists example experiment files.
#[utoipa::path(get, path = "/examples", tag = "experiments", responses((status = 200, body = Vec<Example>)))]
pub(crate) async fn examples(State(app): Shared) -> Result<Json<Vec<Example>>, ApiError> {
    app.blocking(move |app| Ok(Json(examples::readable(&app.files())))).await
}

#[cfg(test)]
mod tests;
