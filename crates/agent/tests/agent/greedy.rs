//! One enrolled controller that sends more than there is memory for: the agent lives on, and others have what is theirs.

use trunkline_control::wire::{Frame, Message, WireError, tag};
use trunkline_control::{FromAgent, RefusalKind, ToAgent};
use trunkline_core::Bytes;

use crate::killed::Process;
use crate::support::{Ground, Line, VOICE, experiment, offer, part, prepare};

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
        assert!(refusal.why.contains("exceeds the memory limit"), "{}", refusal.why);
        // What follows is understood.
        line.say(ToAgent::Facts);
        assert!(matches!(line.hear(), FromAgent::Facts(_)));
    }
    let finished = running.hear();
    assert!(matches!(finished, FromAgent::Finished(_)), "{finished:?}");
}

/// Buffers that the far end or the near end of a part would hold, but not within the memory of the agent.
#[test]
fn buffers_of_a_gibibyte_are_refused_at_either_end_before_they_are_filled() {
    let ground = Ground::new();
    let process = Process::start_with(&ground.state("near"), None, Bytes(256 << 20));
    let far = ground.agent("far", "127.0.0.3", "");
    let desk = ground.controller("studio", &[&far]);
    ground.enrol("studio", desk.identity.fingerprint(), "near");
    let mut line = process.connect(&desk);

    let mut large = offer(&part(0), &far);
    large.buffers = Bytes(1 << 30);
    line.say(ToAgent::Offer(large));
    let refusal = line.refusal();
    assert_eq!(refusal.kind, RefusalKind::Limit);
    assert!(refusal.why.contains("make `window` or `send-buffer` smaller"), "{}", refusal.why);

    let endpoint = desk.connect(&far).offer(&far, &part(0), &process.fingerprint);
    let quic =
        "transport = { kind = \"quic\", window = \"1 GiB\" }\nsource = { kind = \"voice\", samples = 80 }";
    line.say(prepare(&part(0), &experiment("1 s", quic), endpoint.clone()));
    let refusal = line.refusal();
    assert_eq!(refusal.kind, RefusalKind::Limit);
    assert!(refusal.why.contains("may hold 2 GiB in their buffers"), "{}", refusal.why);
    // Nothing of it is held, and what fits runs.
    line.prepare(&part(0), &experiment("300 ms", VOICE), endpoint);
    line.attach(&part(0), 0);
    line.start(&part(0));
    let finished = line.hear();
    assert!(matches!(finished, FromAgent::Finished(_)), "{finished:?}");
}
