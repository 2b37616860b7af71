//! TCP conversations: one thread sends, and one receives if the flow is reflected.

use std::io::{self, Read as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

use socket2::SockRef;
use trunkline_core::{Bytes, Duration, FlowId, Time};
use trunkline_io::poll::Interest;
use trunkline_io::{Pacer, Poller, clock, pace};
use trunkline_metrics::Observation;
use trunkline_traffic::{Feedback, MessageBuffer, Source};
use trunkline_transport::framing::{Cover, Deframer, HEADER_LENGTH, Header, MessageKind, Place};

use super::{Answer, Common, LOOK};
use crate::ceiling::Turn;
use crate::events::Outbox;

/// One member of a TCP flow, connected.
pub(crate) struct Conversation {
    pub(crate) id: FlowId,
    /// Its number among the senders.
    pub(crate) sender: usize,
    pub(crate) stream: TcpStream,
    pub(crate) source: Box<dyn Source>,
    pub(crate) channels: u16,
    /// What headers of messages may be.
    pub(crate) cover: Cover,
    pub(crate) send_timeout: Option<Duration>,
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
        sequences: vec![0; usize::from(conversation.channels)],
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
    sequences: Vec<u32>,
    outbox: Outbox,
}

impl Speaker<'_> {
    fn run(&mut self) -> Result<(), io::Error> {
        let mut messages = MessageBuffer::with_headroom(HEADER_LENGTH);
        self.common.wait_for_begin(self.pacer.spin());
        while self.common.stage.is_sending() {
            self.hear_answers();
            let now = self.common.clock.now();
            match self.conversation.source.next_due() {
                Some(due) if due <= now => {
                    if let Some(turn) = self.turn().filter(|turn| *turn > now) {
                        self.wait_until(turn);
                        continue;
                    }
                    messages.clear();
                    self.conversation.source.produce(now, &mut messages);
                    self.outbox.push_overflows(self.conversation.id, &mut messages);
                    if messages.messages().is_empty() {
                        self.wait_until(now + LOOK); // it is over; never asked twice at one moment
                    }
                    for place in 0..messages.messages().len() {
                        if let Err(error) = self.say(&mut messages, place) {
                            self.refuse(&messages, place + 1);
                            return Err(error);
                        }
                    }
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
        let Conversation { source, awaited, .. } = &self.conversation;
        if !awaited {
            return source.is_finished();
        }
        let over = source.over_at().is_some_and(|at| at <= now);
        if over {
            self.common.stage.one_is_over();
        }
        over
    }

    /// Hands one message to the kernel. Once a part of it is taken the rest follows, however long that takes: a
    /// message that has begun is sent, and one that could not begin within the send timeout is refused.
    fn say(&mut self, messages: &mut MessageBuffer, place: usize) -> io::Result<()> {
        let (channel, due) = (messages.messages()[place].channel, messages.messages()[place].due);
        let Some(counter) = self.sequences.get_mut(usize::from(channel)) else { return Ok(()) };
        let sequence = *counter;
        *counter = counter.wrapping_add(1);
        let kind = if messages.messages()[place].asks { MessageKind::Ask } else { MessageKind::Forward };
        let bytes = messages.bytes_mut(place);
        let payload = Bytes((bytes.len() - HEADER_LENGTH) as u64);
        let sent = self.common.clock.now();
        let header = self.header(kind, channel, sequence, due, sent, payload);
        let bytes = header.stamp(bytes, self.conversation.cover);

        let id = self.conversation.id;
        let patience = self.conversation.send_timeout.unwrap_or(Duration::MAX);
        let Conversation { stream, turn, .. } = &mut self.conversation;
        self.outbox.begin(sent);
        let (taken, result) = write(stream, bytes, patience, turn.as_mut(), &mut self.outbox, self.common);
        self.outbox.end();
        let end = self.common.clock.now();
        if taken == 0 {
            self.outbox.push(end, id, Observation::Refused { channel, sequence, due, payload }, None);
        } else {
            self.outbox.push(sent, id, Observation::Sent { channel, sequence, due, payload }, None);
            let error_nanos = sent.since(due).as_nanos();
            let call = Observation::SendCall { error_nanos, took_nanos: end.since(sent).as_nanos() };
            self.outbox.push(sent, id, call, None);
        }
        self.outbox.tick(self.common.clock.now());
        self.conversation.source.notify(end, Feedback::Writable);
        result
    }

    /// Refuses what should have left before the end: a sender that is held up must not hide it.
    fn refuse_overdue(&mut self) {
        let now = self.common.clock.now();
        let mut messages = MessageBuffer::with_headroom(HEADER_LENGTH);
        while self.conversation.source.next_due().is_some_and(|due| due <= now) {
            messages.clear();
            self.conversation.source.produce(now, &mut messages);
            self.outbox.push_overflows(self.conversation.id, &mut messages);
            if messages.messages().is_empty() {
                return;
            }
            self.refuse(&messages, 0);
        }
    }

    /// Refuses the messages from this place on.
    fn refuse(&mut self, messages: &MessageBuffer, from: usize) {
        let now = self.common.clock.now();
        for (place, message) in messages.messages().iter().enumerate().skip(from) {
            let Some(counter) = self.sequences.get_mut(usize::from(message.channel)) else { continue };
            let (channel, sequence, due) = (message.channel, *counter, message.due);
            *counter = counter.wrapping_add(1);
            let payload = Bytes((messages.bytes(place).len() - HEADER_LENGTH) as u64);
            self.outbox.push(
                now,
                self.conversation.id,
                Observation::Refused { channel, sequence, due, payload },
                None,
            );
        }
    }

    /// Says that nothing follows, in a message and by closing this direction.
    fn say_goodbye(&mut self) -> io::Result<()> {
        self.outbox.flush(self.common.clock.now());
        let now = self.common.clock.now();
        let mut end = [0; HEADER_LENGTH];
        self.header(MessageKind::End, 0, 0, now, now, Bytes::ZERO).encode(&mut end);
        write(&self.conversation.stream, &end, Duration::MAX, None, &mut self.outbox, self.common).1?;
        self.conversation.stream.shutdown(Shutdown::Write)
    }

    fn header(
        &self,
        kind: MessageKind,
        channel: u16,
        sequence: u32,
        due: Time,
        sent: Time,
        payload: Bytes,
    ) -> Header {
        Header {
            key: self.common.key,
            length: payload.0 as u32,
            place: Place::Before,
            flow: self.conversation.id,
            sequence,
            channel,
            kind,
            late: sent.since(due),
            sent,
            reflected: Time::ZERO,
        }
    }

    fn hear_answers(&mut self) {
        while let Some(Ok(answer)) = self.conversation.answers.as_ref().map(Receiver::try_recv) {
            self.hear(answer);
        }
    }

    fn hear(&mut self, answer: Answer) {
        answer.tell(self.conversation.source.as_mut(), self.common.clock.now(), &mut self.outbox);
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
pub(crate) struct Listener {
    pub(crate) stream: TcpStream,
    pub(crate) id: FlowId,
    /// The conversation's number among the senders.
    pub(crate) sender: usize,
    /// Whether what comes back is what is measured.
    pub(crate) round_trip: bool,
    pub(crate) keeps_payload: bool,
    pub(crate) answers: Sender<Answer>,
}

impl Listener {
    /// Receives until the conversation ends or the run is over.
    pub(crate) fn listen(self, common: &Common<'_>) {
        let Listener { mut stream, id, sender, round_trip, keeps_payload, answers } = self;
        let mut outbox = common.arrivals(sender);
        let mut deframer = Deframer::new(common.key, id.0..id.0 + 1);
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
                    outbox.push(now, id, Observation::Stray { bytes: Bytes(framed.skipped as u64) }, None);
                }
                let header = framed.header;
                if header.kind != MessageKind::Reflected {
                    continue;
                }
                let payload = Bytes(framed.message().len() as u64);
                let Header { channel, sequence, sent, reflected, .. } = header;
                if round_trip {
                    let what = Observation::Received { channel, sequence, sent, reflected, payload };
                    outbox.push(now, id, what, keeps_payload.then_some(framed.message()));
                }
                // The sending thread may have finished: then nobody asks.
                let _ = answers.send(Answer { flow: id, channel, sequence, at: now });
            }
            outbox.tick(now);
        }
        let rest = deframer.finish();
        if rest > 0 {
            outbox.push(common.clock.now(), id, Observation::Stray { bytes: Bytes(rest as u64) }, None);
        }
    }
}

/// Whether a blocking read only gave up waiting.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests;
