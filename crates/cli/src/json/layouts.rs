//! The list of all layouts: name, version, and the commands that print them.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::results::*;
use super::{Output, describe};

/// A schema's name, and with it the schemas of all types in it.
pub(super) type Schemas = (String, Vec<(String, RefOr<Schema>)>);

/// A layout of what commands print with `--json`.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Its name: `kind`.
    pub kind: &'static str,
    /// Its version: `format`.
    pub format: u32,
    /// The commands that print it, as they are typed.
    pub commands: &'static [&'static str],
    /// Its schema.
    pub(super) schemas: fn() -> Schemas,
}

macro_rules! layouts {
    ($($(#[$only:meta])* $type:path = $kind:expr, $format:expr, [$($command:literal),* $(,)?];)*) => {
        $(
            $(#[$only])*
            impl Output for $type {
                const KIND: &str = $kind;
                const FORMAT: u32 = $format;
            }
        )*

        /// All layouts.
        pub const LAYOUTS: &[Layout] = &[$(
            $(#[$only])*
            Layout { kind: $kind, format: $format, commands: &[$($command),*], schemas: describe::schemas::<$type> },
        )*];
    };
}

layouts! {
    ErrorOutput = "error", 1, ["every command that fails"];
    WarningsOutput = "warnings", 1, ["every command that warns after its last result"];
    trunkline_report::output::Report = trunkline_report::KIND, trunkline_report::FORMAT, ["run", "report"];
    trunkline_planner::output::PlanOutput = trunkline_planner::KIND, trunkline_planner::FORMAT, ["plan"];
    CheckOutput = "check", 2, ["check"];
    RunsOutput = "runs", 2, ["runs"];
    RunTagsOutput = "run-tags", 1, ["runs tag"];
    ComparisonOutput = "comparison", 2, ["runs compare"];
    ExportOutput = "export", 1, ["runs export"];
    ImportOutput = "import", 1, ["runs import"];
    MergeOutput = "merge", 1, ["runs merge"];
    RemovedOutput = "removed", 1, ["runs remove", "runs prune"];
    trunkline_papers::output::Studies = "studies", 1, ["papers"];
    trunkline_papers::output::StudyCell = trunkline_papers::CELL_KIND, trunkline_papers::CELL_FORMAT, ["paper"];
    trunkline_papers::output::StudyConstant =
        trunkline_papers::CONSTANT_KIND, trunkline_papers::CONSTANT_FORMAT, ["paper --calibrate"];
    SessionOutput = "session", 1, ["send", "receive", "reflect"];
    trunkline_advisor::output::Advice = trunkline_advisor::KIND, trunkline_advisor::FORMAT, ["probe"];
    LearnedOutput = "imported-link", 1, ["learn --from"];
    PathsOutput = "paths", 1, ["paths", "paths list", "paths import"];
    PathOutput = "path", 1, ["paths show"];
    PathComparisonOutput = "path-comparison", 1, ["paths compare"];
    PathExportOutput = "path-export", 1, ["paths export"];
    PathsRemovedOutput = "paths-removed", 1, ["paths remove"];
    trunkline_learn::output::ProbedPath = "learned-path", 1, ["learn"];
    trunkline_learn::output::WatchedPath = "watched-path", 1, ["learn --watch"];
    ListenOutput = "listen", 2, ["listen"];
    #[cfg(target_os = "linux")]
    WiresOutput = "wires", 1, ["wire status"];
    #[cfg(target_os = "linux")]
    WireCountersOutput = "wire-counters", 1, ["wire top"];
    WireUpOutput = "wire-up", 1, ["wire up"];
    WiresRemovedOutput = "wires-removed", 1, ["wire down --stale"];
    KernelsOutput = "kernels", 1, ["kernel build", "kernel list"];
    ServerOutput = "server", 1, ["serve"];
    LoginLinkOutput = "login-link", 1, ["serve token"];
    TokenOutput = "token", 1, ["serve token --name NAME"];
    TokensOutput = "tokens", 1, ["serve tokens"];
    PairingOutput = "pairing", 1, ["agent pair", "peer pair"];
    PeersOutput = "peers", 1, ["peer list"];
    AgentKeptOutput = "agent-kept", 1, ["agent clean"];
    EnrolledOutput = "enrolled", 1, ["agent enrol"];
    AgentsOutput = "agents", 1, ["agent list"];
    AgentStatusOutput = "agent-status", 2, ["agent status"];
}
