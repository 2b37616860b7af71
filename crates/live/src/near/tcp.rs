//! TCP conversations: one thread sends, and one receives if the flow is reflected.

use std::io::{self, Read as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

use socket2::SockRef;
use trunkline_core::{Duration, FlowId, Time};
use trunkline_flows::{Answer, Buffers, Delivery, Lane, Listener, ListenerSpec, Side, Talker, TalkerSpec};
use trunkline_io::poll::Interest;
use trunkline_io::{Pacer, Poller, clock, pace};
use trunkline_metrics::Observation;
use trunkline_transport::framing::Deframer;

use super::{Common, LOOK};
use crate::ceiling::Turn;
use crate::events::Outbox;

/// One member of a TCP flow, connected.
pub(crate) struct Conversation {
    pub(crate) talker: Talker,
    pub(crate) spec: TalkerSpec,
    /// Its number among the senders.
    pub(crate) sender: usize,
    pub(crate) stream: TcpStream,
    /// What comes back, if anything does.
    pub(crate) answers: Option<Receiver<Answer>>,
    pub(crate) spin: Duration,
    /// Whether the sending ends with it.
    pub(crate) awaited: bool,
    /// What holds it back beside the network, if anything does.
    pub(crate) turn: Option<Turn>,
}

/// What is left of a conversation when its source has finished.
pub(crate) struct Spoken {
    /// Kept open until the run is over: the kernel still has bytes to send.
    pub(crate) stream: TcpStream,
    /// How the connection broke before, if it did: as those of engines of ours do.
    pub(crate) broken: Option<&'static str>,
}

/// Sends what the source wants until it is finished, or until the run is stopped or over: then what was due by its end
/// and has not left is refused.
pub(crate) fn send(conversation: Conversation, common: &Common<'_>) -> Spoken {
    let mut speaker = Speaker {
        common,
        pacer: Pacer::new(common.clock, conversation.spin),
        lane: Lane::default(),
        outbox: common.departures(conversation.sender),
        conversation,
    };
    let broken = speaker.run().err().filter(|_| !common.stage.is_over());
    if common.is_at_its_end() {
        speaker.refuse_overdue();
    }
    Spoken { stream: speaker.conversation.stream, broken: broken.as_ref().map(how_it_broke) }
}

struct Speaker<'s> {
    common: &'s Common<'s>,
    pacer: Pacer,
    conversation: Conversation,
    lane: Lane,
    outbox: Outbox,
}

impl Speaker<'_> {
    fn run(&mut self) -> Result<(), io::Error> {
        self.common.wait_for_begin(self.pacer.spin());
        while self.common.stage.is_sending() {
            self.hear_answers();
            let now = self.common.clock.now();
            match self.conversation.talker.next_due() {
                Some(due) if due <= now => {
                    if let Some(turn) = self.turn().filter(|turn| *turn > now) {
                        self.wait_until(turn);
                        continue;
                    }
                    if self.conversation.talker.produce(now, &mut self.lane, &mut self.outbox) == 0 {
                        self.wait_until(now + LOOK); // it is over; never asked twice at one moment
                    }
                    for place in 0..self.lane.len() {
                        if let Err(error) = self.say(place) {
                            let now = self.common.clock.now();
                            let rest = place + 1..self.lane.len();
                            rest.for_each(|place| self.lane.refuse(place, now, &mut self.outbox));
                            return Err(error);
                        }
                    }
                    self.lane.clear();
                }
                Some(due) => self.wait_until(due),
                None if self.is_over(now) || now >= self.common.stop => break,
                None => self.wait_until(now + LOOK),
            }
        }
        self.say_goodbye()
    }

    /// When its owner lets it send next, if that is not up to the network alone.
    fn turn(&mut self) -> Option<Time> {
        let at = self.conversation.turn.as_mut()?.at(clock::raw_now());
        Some(self.common.clock.from_raw(at))
    }

    /// Whether nothing will be due; and for a source with which the sending ends, whether it has its answers too. Then
    /// it tells the run, once: nobody asks again.
    fn is_over(&self, now: Time) -> bool {
        let Conversation { talker, awaited, .. } = &self.conversation;
        if !awaited {
            return talker.is_finished();
        }
        let over = talker.over_at().is_some_and(|at| at <= now);
        if over {
            self.common.stage.one_is_over();
        }
        over
    }

    /// Hands one message to the kernel. Once a part of it is taken the rest follows, however long that takes: a
    /// message that has begun is sent, and one that could not begin within the send timeout is refused.
    fn say(&mut self, place: usize) -> io::Result<()> {
        let sent = self.common.clock.now();
        let Conversation { stream, turn, spec, talker, .. } = &mut self.conversation;
        self.lane.stamp(place..place + 1, sent, spec);
        let bytes = self.lane.stamped(place, spec);
        let patience = spec.send_timeout.unwrap_or(Duration::MAX);
        self.outbox.begin(sent);
        let (taken, result) = write(stream, bytes, patience, turn.as_mut(), &mut self.outbox, self.common);
        self.outbox.end();
        let end = self.common.clock.now();
        if taken == 0 {
            self.lane.refuse(place, end, &mut self.outbox);
        } else {
            self.lane.sent(place, sent, &mut self.outbox);
            let error_nanos = sent.since(self.lane.due(place)).as_nanos();
            let call = Observation::SendCall { error_nanos, took_nanos: end.since(sent).as_nanos() };
            self.outbox.push(sent, talker.id(), call, None);
        }
        self.outbox.tick(self.common.clock.now());
        result
    }

    /// Refuses what should have left before the end: a sender that is held up must not hide it.
    fn refuse_overdue(&mut self) {
        let Speaker { common, conversation, lane, outbox, .. } = self;
        let Conversation { talker, spec, .. } = conversation;
        let now = common.clock.now();
        talker.refuse_overdue(now, (spec, lane, &mut Buffers::new(0)), outbox);
    }

    /// Says that nothing follows, in a message and by closing this direction.
    fn say_goodbye(&mut self) -> io::Result<()> {
        self.outbox.flush(self.common.clock.now());
        let now = self.common.clock.now();
        let end = self.conversation.talker.goodbye(now, &self.conversation.spec);
        write(&self.conversation.stream, &end, Duration::MAX, None, &mut self.outbox, self.common).1?;
        self.conversation.stream.shutdown(Shutdown::Write)
    }

    fn hear_answers(&mut self) {
        while let Some(Ok(answer)) = self.conversation.answers.as_ref().map(Receiver::try_recv) {
            self.hear(answer);
        }
    }

    fn hear(&mut self, answer: Answer) {
        self.conversation.talker.answered(self.common.clock.now(), answer, &mut self.outbox);
    }

    /// Returns at `due`, at an answer, or in time to look at the stage.
    fn wait_until(&mut self, due: Time) {
        let now = self.common.clock.now();
        self.outbox.tick(now);
        if due.since(now) >= LOOK {
            self.outbox.flush(now);
        }
        let until = due.min(now + LOOK);
        let Some(answers) = &self.conversation.answers else {
            self.pacer.sleep_until(until);
            return;
        };
        let sleep = until.since(now).saturating_sub(self.pacer.spin());
        if !sleep.is_zero() {
            match answers.recv_timeout(sleep.to_std()) {
                Ok(answer) => return self.hear(answer),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => _ = self.pacer.sleep_until(until),
            }
        }
        while self.common.clock.now() < until {
            if let Ok(answer) = answers.try_recv() {
                return self.hear(answer);
            }
            core::hint::spin_loop();
        }
    }
}

/// Writes as the kernel takes it, and where somebody's turns are to be kept to, piece by piece: gives up if it takes nothing
/// for `patience`, or when the run is over. Says how much was taken.
fn write(
    stream: &TcpStream,
    bytes: &[u8],
    patience: Duration,
    mut turn: Option<&mut Turn>,
    outbox: &mut Outbox,
    common: &Common<'_>,
) -> (usize, io::Result<()>) {
    let begun = common.clock.now();
    let mut taken = 0;
    while taken < bytes.len() {
        let end = if turn.is_some() { bytes.len().min(taken + PIECE) } else { bytes.len() };
        match SockRef::from(stream).send_with_flags(&bytes[taken..end], libc::MSG_DONTWAIT | NO_SIGNAL) {
            Ok(more) => {
                taken += more;
                let Some(turn) = &mut turn else { continue };
                turn.sent(more);
                // Before the next message it is looked at whether that is wanted still.
                if taken < bytes.len() && !wait_for(turn, outbox, common) {
                    return (taken, Err(io::ErrorKind::TimedOut.into()));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let now = common.clock.now();
                outbox.tick(now);
                let left = if taken == 0 { (begun + patience).since(now) } else { Duration::MAX };
                if left.is_zero() {
                    return (taken, Ok(()));
                }
                if common.stage.is_over() {
                    return (taken, Err(io::ErrorKind::TimedOut.into()));
                }
                let mut poller = Poller::new([(stream.as_fd(), Interest::Write)]);
                if let Err(error) = poller.wait(left.min(LOOK)) {
                    return (taken, Err(error));
                }
            }
            Err(error) => return (taken, Err(error)),
        }
    }
    (taken, Ok(()))
}

/// Waits until it may send; false if the run is over before.
fn wait_for(turn: &mut Turn, outbox: &mut Outbox, common: &Common<'_>) -> bool {
    let at = turn.at(clock::raw_now());
    loop {
        let now = clock::raw_now();
        if now >= at {
            return true;
        }
        if common.stage.is_over() {
            return false;
        }
        outbox.tick(common.clock.now());
        pace::sleep_until_raw(at.min(now + LOOK.as_nanos()));
    }
}

/// So much of a message is written at once where turns are to be kept to.
const PIECE: usize = 16 << 10;

fn how_it_broke(error: &io::Error) -> &'static str {
    match error.kind() {
        // The peer closed, and did not want what was sent after that.
        io::ErrorKind::BrokenPipe => "closed-by-peer",
        io::ErrorKind::ConnectionReset => "reset-by-peer",
        io::ErrorKind::TimedOut => "no-answer",
        _ => "unreachable",
    }
}

/// A broken connection is an error, not a signal.
#[cfg(target_os = "linux")]
const NO_SIGNAL: libc::c_int = libc::MSG_NOSIGNAL;
/// A broken connection is an error, not a signal: elsewhere the runtime ignores the signal.
#[cfg(not(target_os = "linux"))]
const NO_SIGNAL: libc::c_int = 0;

/// Who hears what comes back of one conversation.
pub(crate) struct Returns {
    pub(crate) stream: TcpStream,
    pub(crate) id: FlowId,
    pub(crate) flow: ListenerSpec,
    /// The conversation's number among the senders.
    pub(crate) sender: usize,
    pub(crate) answers: Sender<Answer>,
}

impl Returns {
    /// Receives until the conversation ends or the run is over.
    pub(crate) fn receive(self, common: &Common<'_>) {
        let Returns { mut stream, id, flow, sender, answers } = self;
        let mut outbox = common.arrivals(sender);
        let ids = id.0..id.0 + 1;
        let listener = Listener::new(Side::Source, Arc::new([flow]), ids.clone());
        let mut deframer = Deframer::new(common.key, ids);
        let mut chunk = vec![0; 64 << 10];
        while !common.stage.is_over() {
            let length = match stream.read(&mut chunk) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if is_timeout(&error) => {
                    outbox.tick(common.clock.now());
                    continue;
                }
                Err(_) => break,
            };
            let now = common.clock.now();
            deframer.push(&chunk[..length]);
            while let Some(framed) = deframer.next() {
                if framed.skipped > 0 {
                    listener.unmatched(now, framed.skipped, &mut outbox);
                }
                let delivery = listener.deliver(now, &framed.header, framed.bytes, &mut outbox);
                if let Delivery::Answered(answer) = delivery {
                    // The sending thread may have finished: then nobody asks.
                    let _ = answers.send(answer);
                }
            }
            outbox.tick(now);
        }
        let rest = deframer.finish();
        if rest > 0 {
            listener.unmatched(common.clock.now(), rest, &mut outbox);
        }
    }
}

/// Whether a blocking read only gave up waiting.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests;
