//! From the library's drawings and edits to those of the API, and back.

use trunkline_experiment::edit::{
    self, BundleDrawn, FlowDrawn, HostDrawn, LimitDrawn, LinkDrawn, SweptDrawn,
};

use crate::api::{
    ApiError, Drawing, DrawingAxis, DrawingBundle, DrawingFlow, DrawingHost, DrawingLimit, DrawingLink, Edit,
    Section,
};

impl From<edit::Drawing> for Drawing {
    fn from(drawing: edit::Drawing) -> Drawing {
        let edit::Drawing { title, hosts, links, flows, bundles, experiment, sweep, limits } = drawing;
        let host =
            |HostDrawn { name, x, y, placed, agent, keys }| DrawingHost { name, x, y, placed, agent, keys };
        let link = |LinkDrawn { name, between, medium, label, keys }| DrawingLink {
            name,
            between,
            medium,
            label,
            keys,
        };
        let flow = |FlowDrawn { name, from, to, transport, source, count, label, keys }| DrawingFlow {
            name,
            from,
            to,
            transport,
            source,
            count,
            label,
            keys,
        };
        let bundle = |BundleDrawn { name, flows, keys }| DrawingBundle { name, flows, keys };
        Drawing {
            title,
            hosts: hosts.into_iter().map(host).collect(),
            links: links.into_iter().map(link).collect(),
            flows: flows.into_iter().map(flow).collect(),
            bundles: bundles.into_iter().map(bundle).collect(),
            experiment,
            sweep: sweep.into_iter().map(|SweptDrawn { key, values }| DrawingAxis { key, values }).collect(),
            limits: limits.into_iter().map(|LimitDrawn { key, limit }| DrawingLimit { key, limit }).collect(),
        }
    }
}

impl TryFrom<Edit> for edit::Edit {
    type Error = ApiError;

    fn try_from(edit: Edit) -> Result<edit::Edit, ApiError> {
        Ok(match edit {
            Edit::Set { path, value } => edit::Edit::Set { path, value },
            Edit::Remove { path } => edit::Edit::Remove { path },
            Edit::Rename { section, from, to } => edit::Edit::Rename { section: named(section)?, from, to },
            Edit::Add { section, name, values } => edit::Edit::Add { section: named(section)?, name, values },
            Edit::Place { host, x, y } => edit::Edit::Place { host, x, y },
        })
    }
}

/// A section whose tables have names.
fn named(section: Section) -> Result<edit::Section, ApiError> {
    match section {
        Section::Hosts => Ok(edit::Section::Hosts),
        Section::Link => Ok(edit::Section::Link),
        Section::Flow => Ok(edit::Section::Flow),
        Section::Bundle => Ok(edit::Section::Bundle),
        Section::Experiment | Section::Sweep | Section::Limits => Err(ApiError::input(
            "only hosts, links, flows and bundles have names; set or remove other keys by their path",
        )),
    }
}
