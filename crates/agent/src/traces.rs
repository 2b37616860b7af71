//! What an agent does, as traces of OpenTelemetry: a span for every connection and every part, with the steps of the part
//! below it, sent to a collector by OTLP over HTTP. Off unless the owner names a collector.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{
    Span as _, SpanContext, Status, TraceContextExt as _, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};

use crate::error::AgentError;
use crate::settings::PROGRAM;

/// How long the collector may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where spans go.
#[derive(Debug, Default)]
pub(crate) struct Traces(Option<(SdkTracerProvider, SdkTracer)>);

/// Something that takes time. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Span(Option<opentelemetry_sdk::trace::Span>);

/// What a span is a part of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parent(Option<SpanContext>);

impl Traces {
    /// To a collector: `http://host:4318`. Spans are gathered and sent by a thread of their own, so nothing waits for them.
    pub(crate) fn to(collector: &str, agent: &str) -> Result<Traces, AgentError> {
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(Client::new())
            .with_endpoint(format!("{collector}/v1/traces"))
            .with_timeout(PATIENCE)
            .build();
        let exporter = exporter.map_err(|error| {
            AgentError::system(format!("cannot send traces to {collector}"))(std::io::Error::other(error))
        })?;
        let resource = Resource::builder_empty().with_service_name("trunkline-agent").with_attributes([
            KeyValue::new("service.version", PROGRAM),
            KeyValue::new("service.instance.id", agent.to_owned()),
        ]);
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        let tracer = provider.tracer("trunkline-agent");
        Ok(Traces(Some((provider, tracer))))
    }

    /// Begins a span.
    pub(crate) fn span(
        &self,
        name: &'static str,
        parent: &Parent,
        attributes: &[(&'static str, String)],
    ) -> Span {
        Span(self.0.as_ref().map(|(_, tracer)| {
            let attributes = attributes.iter().map(|(key, value)| KeyValue::new(*key, value.clone()));
            let builder = tracer.span_builder(name).with_attributes(attributes.collect::<Vec<_>>());
            let context = match &parent.0 {
                Some(parent) => Context::new().with_remote_span_context(parent.clone()),
                None => Context::new(),
            };
            builder.start_with_context(tracer, &context)
        }))
    }

    /// Sends what has ended, and waits for that a while.
    pub(crate) fn flush(&self) {
        if let Some((provider, _)) = &self.0 {
            // A collector that does not answer has lost them.
            let _ = provider.shutdown_with_timeout(PATIENCE);
        }
    }
}

impl Parent {
    /// What a controller calls its own span (W3C Trace Context: `traceparent`).
    pub(crate) fn of(traceparent: Option<&str>) -> Parent {
        let header = traceparent.map(|text| ("traceparent".to_owned(), text.to_owned()));
        let headers: HashMap<String, String> = header.into_iter().collect();
        let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &headers);
        let parent = context.span().span_context().clone();
        Parent(parent.is_valid().then_some(parent))
    }
}

impl Span {
    /// What happens in it is a part of it.
    pub(crate) fn as_parent(&self) -> Parent {
        Parent(self.0.as_ref().map(|span| span.span_context().clone()))
    }

    /// Something that became known on the way.
    pub(crate) fn know(&mut self, key: &'static str, value: impl Into<String>) {
        if let Some(span) = &mut self.0 {
            span.set_attribute(KeyValue::new(key, value.into()));
        }
    }

    /// It did not end as it should.
    pub(crate) fn failed(&mut self, why: &str) {
        if let Some(span) = &mut self.0 {
            span.set_status(Status::error(why.to_owned()));
        }
    }
}

/// A blocking client, used by the thread that sends spans.
#[derive(Debug)]
struct Client(ureq::Agent);

impl Client {
    fn new() -> Client {
        let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).http_status_as_error(false);
        Client(config.build().into())
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let mut answer = self.0.run(Request::from_parts(head, body.to_vec()))?;
        let bytes = answer.body_mut().with_config().limit(1 << 20).read_to_vec()?;
        let (head, _) = answer.into_parts();
        Ok(Response::from_parts(head, Bytes::from(bytes)))
    }
}

impl HttpClient for Client {
    fn send_bytes<'c, 'f>(
        &'c self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        'c: 'f,
        Self: 'f,
    {
        let sent = self.send(request);
        Box::pin(std::future::ready(sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_off_costs_nothing_and_what_is_no_parent_is_none() {
        let traces = Traces::default();
        let mut span = traces.span("part", &Parent::default(), &[("run", "1".into())]);
        span.failed("no");
        assert!(span.as_parent().0.is_none());
        traces.flush();
        for text in [None, Some(""), Some("00-zz-zz-01")] {
            assert!(Parent::of(text).0.is_none(), "{text:?}");
        }
        let parent = Parent::of(Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
        assert_eq!(parent.0.unwrap().span_id().to_string(), "b7ad6b7169203331");
    }
}
