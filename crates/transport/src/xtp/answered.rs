//! Multicasts of XTP that are answered: the stream goes one way, and every answer is an acknowledged datagram to its sender.

use std::collections::BTreeMap;

use trunkline_core::{Address, Ecn, Time};

use super::XtpDatagrams;
use super::wire::Options;
use crate::{Close, Conversation, Endpoint, Event, Features, Message, Received, SendError, Transmit};

/// Offset of the bits of [`Options`] in a packet.
const OPTIONS_AT: usize = 8;

/// One end: the sender of the stream, which takes the answers of all receivers, or a receiver, which sends its own.
pub(crate) struct Answered<E> {
    stream: E,
    /// By host of the other end.
    answers: BTreeMap<u16, XtpDatagrams>,
    answers_itself: bool,
}

impl<E: Endpoint> Answered<E> {
    /// The sender, with an end for the answers of every receiver.
    pub(crate) fn sender(stream: E, answers: BTreeMap<u16, XtpDatagrams>) -> Answered<E> {
        Answered { stream, answers, answers_itself: false }
    }

    /// A receiver of what this host sends.
    pub(crate) fn receiver(stream: E, sender: u16, answers: XtpDatagrams) -> Answered<E> {
        Answered { stream, answers: BTreeMap::from([(sender, answers)]), answers_itself: true }
    }
}

impl<E: Endpoint> Conversation for Answered<E> {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        match self.answers.values_mut().next().filter(|_| self.answers_itself) {
            Some(answers) => answers.send(now, message),
            None => self.stream.send(now, message),
        }
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        // An answer is whole, so that answers may follow each other as in one stream.
        let received = self.stream.receive(into);
        received.or_else(|| self.answers.values_mut().find_map(|answers| answers.receive(into)))
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.stream.poll_event();
        event.or_else(|| self.answers.values_mut().find_map(XtpDatagrams::poll_event))
    }

    fn close(&mut self, now: Time, how: Close) {
        self.stream.close(now, how);
        self.answers.values_mut().for_each(|answers| answers.close(now, how));
    }

    fn features(&self) -> &'static Features {
        self.stream.features()
    }
}

impl<E: Endpoint> Endpoint for Answered<E> {
    fn handle_packet(&mut self, now: Time, from: Address, ecn: Ecn, packet: &[u8]) {
        let is_multicast = packet.get(OPTIONS_AT).is_some_and(|first| {
            let [_, multi, ..] = Options::MULTI.bits().to_be_bytes();
            first & multi != 0
        });
        match self.answers.get_mut(&from.host).filter(|_| !is_multicast) {
            Some(answers) => answers.handle_packet(now, from, ecn, packet),
            None => self.stream.handle_packet(now, from, ecn, packet),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.stream.handle_timeout(now);
        self.answers.values_mut().for_each(|answers| answers.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        let transmit = self.stream.poll_transmit(now, into);
        transmit.or_else(|| self.answers.values_mut().find_map(|answers| answers.poll_transmit(now, into)))
    }

    fn next_timeout(&self) -> Option<Time> {
        let answers = self.answers.values().filter_map(Endpoint::next_timeout);
        answers.chain(self.stream.next_timeout()).min()
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        self.stream.counters(count);
        self.answers.values().for_each(|answers| answers.counters(count));
    }
}
