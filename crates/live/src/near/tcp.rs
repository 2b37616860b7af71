//! TCP conversations: one thread sends, and one receives if the flow is reflected.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

use trunkline_core::{Bytes, Duration, FlowId, Rate, Time};
use trunkline_flows::{
    Answer, Buffers, Delivery, Found, Lane, Listener, ListenerSpec, Progress, Reader, Side, Talker,
    TalkerSpec,
};
use trunkline_io::sockets::StreamSocket;
use trunkline_io::{Pacer, clock, tcp};
use trunkline_metrics::{ConnectionOverTime, ConnectionSample, Retransmissions};
use trunkline_transport::{Close, Conversation as _, Message};

use super::{Common, Departures, LOOK};
use crate::ceiling::Turn;

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
    /// Samples of its state, if it is sampled.
    pub(crate) over_time: Option<ConnectionOverTime>,
}

/// What is left of a conversation when its source has finished.
pub(crate) struct Spoken {
    /// Kept open until the run is over: the kernel still has bytes to send.
    pub(crate) stream: TcpStream,
    /// How the connection broke before, if it did: as those of engines of ours do.
    pub(crate) broken: Option<&'static str>,
    /// Samples of its state.
    pub(crate) samples: Vec<ConnectionSample>,
}

/// The kernel counts no causes of retransmissions but the spurious ones.
fn sample_of(at: Time, state: &tcp::TcpState) -> ConnectionSample {
    let bits = |bytes: u64| Rate::from_bits_per_second(bytes.saturating_mul(8));
    ConnectionSample {
        at,
        congestion_window: Bytes(state.congestion_window),
        slow_start_threshold: state.slow_start_threshold.map(Bytes),
        in_flight: Bytes(state.in_flight),
        smoothed_round_trip: state.smoothed_round_trip,
        pacing_rate: state.pacing_rate.map(bits),
        retransmissions: Retransmissions {
            all: state.retransmissions,
            spurious: state.spurious,
            ..Retransmissions::default()
        },
    }
}

/// Sends what the source wants until it is finished, or until the run is stopped or over: then what was due by its end
/// and has not left is refused.
pub(crate) fn send(conversation: Conversation, common: &Common<'_>) -> Spoken {
    let Conversation { talker, spec, sender, stream, answers, spin, awaited, turn, over_time } = conversation;
    let socket = StreamSocket::new(stream);
    let mut speaker = Speaker {
        common,
        pacer: Pacer::new(common.clock, spin),
        socket: if turn.is_some() { socket.in_pieces(PIECE) } else { socket },
        talker,
        spec,
        answers,
        awaited,
        turn,
        lane: Lane::default(),
        buffers: Buffers::new(SPARE),
        departures: Departures::of(sender, common),
        over_time,
    };
    speaker.run();
    let broken = speaker.socket.broken().filter(|_| !common.stage.is_over());
    speaker.refuse_the_rest();
    speaker.record(common.clock.now());
    let samples = speaker.over_time.map_or_else(Vec::new, ConnectionOverTime::into_samples);
    Spoken { stream: speaker.socket.into_stream(), broken: broken.map(how_it_broke), samples }
}

struct Speaker<'s> {
    common: &'s Common<'s>,
    pacer: Pacer,
    socket: StreamSocket,
    talker: Talker,
    spec: TalkerSpec,
    answers: Option<Receiver<Answer>>,
    awaited: bool,
    turn: Option<Turn>,
    lane: Lane,
    buffers: Buffers,
    departures: Departures,
    over_time: Option<ConnectionOverTime>,
}

impl Speaker<'_> {
    fn run(&mut self) {
        self.common.wait_for_begin(self.pacer.spin());
        while self.common.stage.is_sending() && self.socket.broken().is_none() {
            self.hear_answers();
            self.sample();
            if !self.pour() {
                continue;
            }
            let now = self.common.clock.now();
            match self.talker.next_due() {
                Some(due) if due <= now => {
                    if let Some(turn) = self.turn().filter(|turn| *turn > now) {
                        self.wait_until(turn);
                    } else if self.talker.produce(now, &mut self.lane, &mut self.departures) == 0 {
                        self.wait_until(now + LOOK); // it is over; never asked twice at one moment
                    } else {
                        while self.send_next() {}
                    }
                }
                Some(due) => self.wait_until(due),
                None if self.is_over(now) || now >= self.common.stop => break,
                None => self.wait_until(now + LOOK),
            }
        }
        if self.socket.broken().is_none() {
            self.say_goodbye();
        }
    }

    /// Sends the rest of a message that has begun, and what waits behind it; false if not all of it has left.
    fn pour(&mut self) -> bool {
        loop {
            let has_rest = self.socket.has_rest();
            if !has_rest && !self.talker.is_waiting() {
                return true;
            }
            let now = self.common.clock.now();
            if let Some(turn) = self.turn().filter(|turn| *turn > now) {
                self.wait_until(turn);
                return false;
            }
            let parts = (&self.spec, &mut self.buffers);
            let is_full = match has_rest {
                true => !self.socket.flush(),
                false => {
                    let sent = self.talker.send_waiting(now, parts, &mut self.socket, &mut self.departures);
                    sent == Progress::Full
                }
            };
            self.account();
            if is_full {
                self.wait_for_room(now);
                return false;
            }
        }
    }

    /// Sends the next message of those that the source has just produced; false if there is none.
    fn send_next(&mut self) -> bool {
        let now = self.common.clock.now();
        let parts = (&self.spec, &mut self.lane, &mut self.buffers);
        let progress = self.talker.send_next(now, parts, &mut self.socket, &mut self.departures);
        self.account();
        self.departures.tick(self.common.clock.now());
        progress != Progress::Nothing
    }

    /// Samples the state of the connection if that is due.
    fn sample(&mut self) {
        let Some(next) = self.over_time.as_ref().map(ConnectionOverTime::next) else { return };
        let now = self.common.clock.now();
        if next <= now {
            self.record(now);
        }
    }

    /// Adds a sample of the state of the connection.
    fn record(&mut self, now: Time) {
        if let Some(over_time) = &mut self.over_time {
            match tcp::state(self.socket.stream()) {
                Some(state) => over_time.record(now, sample_of(now, &state)),
                None => over_time.skip(now),
            }
        }
    }

    /// Notes what the kernel has taken, where that is limited.
    fn account(&mut self) {
        let taken = self.socket.take_taken();
        if let (1.., Some(turn)) = (taken, &mut self.turn) {
            turn.sent(taken);
        }
    }

    /// Waits until the kernel takes more, or the first message that waits is to be given up, which is done then.
    fn wait_for_room(&mut self, now: Time) {
        if self.socket.broken().is_some() {
            return;
        }
        self.departures.tick(now);
        let until = match self.socket.has_rest() {
            // Once a part of a message is taken the rest follows, however long that takes.
            true => now + LOOK,
            false => self.talker.gives_up_at(&self.spec).unwrap_or(Time::MAX).min(now + LOOK),
        };
        self.socket.wait_for_room(until.since(now));
        if !self.socket.has_rest() {
            let now = self.common.clock.now();
            self.talker.give_up(now, (&self.spec, &mut self.buffers), &mut self.departures);
        }
    }

    /// When its owner lets it send next, if that is not up to the network alone.
    fn turn(&mut self) -> Option<Time> {
        let at = self.turn.as_mut()?.at(clock::raw_now());
        Some(self.common.clock.from_raw(at))
    }

    /// Whether nothing will be due; and for a source with which the sending ends, whether it has its answers too. Then
    /// it tells the run, once: nobody asks again.
    fn is_over(&self, now: Time) -> bool {
        if !self.awaited {
            return self.talker.is_finished();
        }
        let over = self.talker.over_at().is_some_and(|at| at <= now);
        if over {
            self.common.stage.one_is_over();
        }
        over
    }

    /// At the end of the run refuses what should have left before, and otherwise what waits: a sender that is held up
    /// must not hide it.
    fn refuse_the_rest(&mut self) {
        let now = self.common.clock.now();
        let Speaker { talker, spec, lane, buffers, departures, .. } = self;
        match self.common.is_at_its_end() {
            true => talker.refuse_overdue(now, (spec, lane, buffers), departures),
            false => talker.refuse_waiting(now, (spec, buffers), departures),
        }
    }

    /// Says that nothing follows, in a message and by closing this direction.
    fn say_goodbye(&mut self) {
        if let Some(outbox) = &mut self.departures.outbox {
            outbox.flush(self.common.clock.now());
        }
        let end = self.talker.goodbye(self.common.clock.now(), &self.spec);
        while !self.common.stage.is_over() && self.socket.broken().is_none() {
            // What is left of the last message goes first.
            match self.socket.send(Time::ZERO, Message::new(&end)) {
                Ok(()) => break,
                Err(_) => self.socket.wait_for_room(LOOK),
            }
        }
        while self.socket.has_rest() && self.socket.broken().is_none() && !self.common.stage.is_over() {
            if !self.socket.flush() {
                self.socket.wait_for_room(LOOK);
            }
        }
        self.socket.close(Time::ZERO, Close::Graceful);
    }

    fn hear_answers(&mut self) {
        while let Some(Ok(answer)) = self.answers.as_ref().map(Receiver::try_recv) {
            self.hear(answer);
        }
    }

    fn hear(&mut self, answer: Answer) {
        self.talker.answered(self.common.clock.now(), answer, &mut self.departures);
    }

    /// Returns at `due`, at an answer, or in time to look at the stage.
    fn wait_until(&mut self, due: Time) {
        let now = self.common.clock.now();
        self.departures.tick(now);
        if due.since(now) >= LOOK
            && let Some(outbox) = &mut self.departures.outbox
        {
            outbox.flush(now);
        }
        let until = due.min(now + LOOK);
        let Some(answers) = &self.answers else {
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

/// So much of a message is written at once where turns are to be kept to.
const PIECE: usize = 16 << 10;
/// So many buffers of messages that waited are kept for the next.
const SPARE: usize = 64;

fn how_it_broke(error: io::ErrorKind) -> &'static str {
    match error {
        // The peer closed, and did not want what was sent after that.
        io::ErrorKind::BrokenPipe => "closed-by-peer",
        io::ErrorKind::ConnectionReset => "reset-by-peer",
        io::ErrorKind::TimedOut => "no-answer",
        _ => "unreachable",
    }
}

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
        let Returns { stream, id, flow, sender, answers } = self;
        let mut outbox = common.arrivals(sender);
        let ids = id.0..id.0 + 1;
        let listener = Listener::new(Side::Source, Arc::new([flow]), ids.clone());
        let mut socket = StreamSocket::new(stream);
        let mut reader = Reader::new(socket.features(), common.key, ids);
        let mut scratch = Vec::new();
        while !common.stage.is_over() && !socket.is_ended() {
            let any = reader.receive(&mut socket, &mut scratch);
            let now = common.clock.now();
            if any {
                reader.messages(&mut scratch, |found| match found {
                    Found::Unmatched(bytes) => listener.unmatched(now, bytes, &mut outbox),
                    Found::Message(header, bytes) => {
                        let delivery = listener.deliver(now, &header, bytes, &mut outbox);
                        if let Delivery::Answered(answer) = delivery {
                            // The sending thread may have finished: then nobody asks.
                            let _ = answers.send(answer);
                        }
                    }
                });
            }
            outbox.tick(now);
        }
        let rest = reader.finish();
        if rest > 0 {
            listener.unmatched(common.clock.now(), rest, &mut outbox);
        }
    }
}

#[cfg(test)]
mod tests;
