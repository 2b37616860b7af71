//! Runs beside each other.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use trunkline_metrics::Estimate;
use trunkline_report::{Difference, Meaning, meanings};
use utoipa::IntoParams;

use crate::api::{ApiError, CompareEstimate, Comparison, ComparisonRow, Definition};
use crate::app::Shared;
use crate::extract::Query;

/// Which runs are compared.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Pair {
    /// The first.
    pub(crate) run: u64,
    /// The second.
    pub(crate) with: u64,
}

/// Compares two runs, figure by figure.
#[utoipa::path(get, path = "/compare", tag = "runs", params(Pair), responses((status = 200, body = Comparison)))]
pub(crate) async fn compare(
    State(app): Shared,
    Query(pair): Query<Pair>,
) -> Result<Json<Comparison>, ApiError> {
    app.blocking(move |app| {
        let [run, with] = [pair.run, pair.with].map(|id| app.store.run(id));
        Ok(Json(trunkline_report::compare(&run?, &with?).into()))
    })
    .await
}

/// The definitions of the figures.
#[utoipa::path(get, path = "/definitions", tag = "runs", responses((status = 200, body = Vec<Definition>)))]
pub(crate) async fn definitions() -> Result<Json<Vec<Definition>>, ApiError> {
    Ok(Json(meanings().map(Definition::from).collect()))
}

impl From<trunkline_report::Comparison> for Comparison {
    fn from(comparison: trunkline_report::Comparison) -> Comparison {
        let trunkline_report::Comparison { run, with, same_experiment, rows, unmatched } = comparison;
        let is_shown = |meaning: &Meaning| {
            meaning.figure.is_none_or(|figure| rows.iter().any(|row| row.figure.id == figure))
        };
        Comparison {
            run: (&run).into(),
            with: (&with).into(),
            same_experiment,
            definitions: meanings().filter(is_shown).map(Definition::from).collect(),
            rows: rows.into_iter().map(ComparisonRow::from).collect(),
            unmatched,
        }
    }
}

impl From<Difference> for ComparisonRow {
    fn from(row: Difference) -> ComparisonRow {
        ComparisonRow {
            a_point: row.points.0,
            b_point: row.points.1,
            metric: row.figure.id.to_owned(),
            label: row.figure.name.to_owned(),
            unit: row.figure.quantity.base_unit().to_owned(),
            quantity: row.figure.quantity.into(),
            a: (&row.run).into(),
            b: (&row.with).into(),
            difference: row.difference,
            relative: row.relative,
            confidence: row.confidence95,
            significant: row.is_significant(),
            telling: row.is_telling(),
            point: row.point,
            flow: row.flow,
        }
    }
}

impl From<&Estimate> for CompareEstimate {
    fn from(estimate: &Estimate) -> CompareEstimate {
        CompareEstimate {
            mean: estimate.mean,
            ci: estimate.confidence95,
            repetitions: estimate.repetitions as usize,
        }
    }
}

impl From<Meaning> for Definition {
    fn from(meaning: Meaning) -> Definition {
        Definition {
            metric: meaning.figure.map(str::to_owned),
            title: meaning.name.to_owned(),
            text: meaning.text,
            source: meaning.source.to_owned(),
        }
    }
}
