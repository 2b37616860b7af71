//! One enrolled controller that sends more than there is memory for: the agent lives on, and others have what is theirs.

use trunkline_control::wire::{Frame, Message, WireError, tag};
use trunkline_control::{FromAgent, RefusalKind, ToAgent};
use trunkline_core::Bytes;

use crate::killed::Process;
use crate::support::{Ground, Line, VOICE, experiment, part};

/// A frame of one's own.
struct Raw(Vec<u8>);

impl Message for Raw {
    fn to_frame(&self) -> Result<Frame, WireError> {
        Ok(Frame { tag: tag::MESSAGE, body: self.0.clone() })
    }
    fn from_frame(_: Frame) -> Result<Raw, WireError> {
        Err(WireError::Empty)
    }
}

/// Five frames that together are larger than the memory of the agent.
#[test]
fn frames_of_64_mib_on_many_connections_end_neither_the_agent_nor_parts_of_others() {
    let ground = Ground::new();
    let process = Process::start_with(&ground.state("near"), None, Bytes(256 << 20));
    let far = ground.agent("far", "127.0.0.3", "");
    let [studio, other] = ["studio", "other"].map(|name| {
        let desk = ground.controller(name, &[&far]);
        ground.enrol(name, desk.identity.fingerprint(), "near");
        desk
    });
    let mut running = process.connect(&studio);
    let endpoint = studio.connect(&far).offer(&far, &part(0), &process.fingerprint);
    running.prepare(&part(0), &experiment("3 s", VOICE), endpoint);
    running.attach(&part(0), 0);
    running.start(&part(0));

    let mut lines: Vec<Line> = (0..5).map(|_| process.connect(&other)).collect();
    let mut body = b"{\"prepare\":{\"x\":\"".to_vec();
    body.resize((64 << 20) - 2, b'A');
    let frame = Raw(body);
    std::thread::scope(|scope| {
        for line in &lines {
            scope.spawn(|| line.say_raw(&frame));
        }
    });
    for line in &mut lines {
        let refusal = line.refusal();
        assert_eq!(refusal.kind, RefusalKind::Limit);
        assert!(refusal.why.contains("for which there is no memory"), "{}", refusal.why);
        // What follows is understood.
        line.say(ToAgent::Facts);
        assert!(matches!(line.hear(), FromAgent::Facts(_)));
    }
    let finished = running.hear();
    assert!(matches!(finished, FromAgent::Finished(_)), "{finished:?}");
}
