//! Conversations that end before the run does.

mod support;

use support::{experiment, flow, simulate};

/// The sink falls silent, the transport gives up after a while, and a source that sends as fast as it may has nothing any
/// more that would hold it back: it ends with its conversation, and the run goes on.
#[test]
fn a_saturating_source_ends_with_its_conversation() {
    for transport in ["tcp", "sctp", "quic", "urp", "dccp", "xtp"] {
        let flows = format!(
            "[flow.bulk]\nfrom = \"a\"\nto = [{{ host = \"b\", fail = \"200 ms\" }}]\ntransport = \"{transport}\"\n\
             source = {{ kind = \"bulk\", message = \"1 KiB\" }}\n"
        );
        let text = experiment("", &flows).text.replace("\"10 s\"", "\"1 h\"");
        let counts = flow(&simulate(&support::parse(&text)), "bulk").counts;
        assert!((1..counts.sent).contains(&counts.received), "{transport}: {counts:?}");
    }
}
