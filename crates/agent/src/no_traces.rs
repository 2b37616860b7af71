//! The traces of a build without the feature `telemetry`: nothing is sent, and a collector is refused.

use crate::error::AgentError;

/// No collector.
#[derive(Debug, Default)]
pub(crate) struct Traces;

/// Takes time and tells nobody.
#[derive(Debug)]
pub(crate) struct Span;

/// Nothing that others would know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parent(());

impl Traces {
    /// Says which feature is missing.
    pub(crate) fn to(collector: &str, _: &str) -> Result<Traces, AgentError> {
        let why = std::io::Error::other(trunkline_core::not_built("OpenTelemetry", "telemetry"));
        Err(AgentError::system(format!("cannot send traces to {collector}"))(why))
    }

    pub(crate) fn span(&self, _: &'static str, _: &Parent, _: &[(&'static str, String)]) -> Span {
        Span
    }

    pub(crate) fn flush(&self) {}
}

impl Parent {
    pub(crate) fn of(_: Option<&str>) -> Parent {
        Parent(())
    }
}

impl Span {
    pub(crate) fn as_parent(&self) -> Parent {
        Parent(())
    }

    pub(crate) fn know(&mut self, _: &'static str, _: impl Into<String>) {}

    pub(crate) fn failed(&mut self, _: &str) {}
}
