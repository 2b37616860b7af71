//! Bulk as fast as the transport takes it: once, or one transfer after the other.

use std::collections::VecDeque;

use trunkline_core::{Bytes, Distribution, Time};

use crate::draws::{Sizes, Volume};
use crate::source::{Feedback, MessageBuffer, Source, SourceContext, Transfer};

/// One message per call, each due at once: the transport sets the pace. The channels take turns; one whose transfer
/// waits for its answer is left out until that is back.
#[derive(Debug)]
pub(super) struct Unpaced {
    channels: Box<[Channel]>,
    /// Those with something to send, the next one first.
    ready: VecDeque<u16>,
    /// How many wait for the answer that ends their transfer.
    waiting: usize,
    /// Transfers that nobody has asked for yet.
    made: VecDeque<Transfer>,
    /// What each transfer carries.
    volume: Volume,
    /// The last call that made a channel ready or sent of one; before the first the start.
    due: Time,
    stop: Time,
}

#[derive(Debug)]
struct Channel {
    sizes: Sizes,
    /// Messages so far: the driver counts them alike.
    sequence: u32,
    /// Transfers still to make, the present one included; `None` for one without an end of its own.
    transfers: Option<u64>,
    left: Volume,
    /// The present transfer: when its first message was produced, and what it has carried so far.
    began: Option<Time>,
    bytes: u64,
    /// The message whose answer ends the transfer.
    waits_for: Option<u32>,
}

impl Unpaced {
    /// A source of this volume, `transfers` times with an answer after each, or once without one.
    pub(super) fn new(
        sizes: &Distribution,
        volume: Volume,
        transfers: Option<u64>,
        context: &SourceContext,
    ) -> Unpaced {
        let channel = |channel| Channel {
            sizes: Sizes::new(sizes, context, channel),
            sequence: 0,
            transfers,
            left: volume,
            began: None,
            bytes: 0,
            waits_for: None,
        };
        Unpaced {
            channels: (0..context.channels).map(channel).collect(),
            ready: (0..context.channels).collect(),
            waiting: 0,
            made: VecDeque::new(),
            volume,
            due: context.start,
            stop: context.stop,
        }
    }

    /// Ends the transfer of a channel, if this answer is the one that it waits for.
    fn answered(&mut self, now: Time, number: u16, sequence: u32) {
        let Some(channel) = self.channels.get_mut(usize::from(number)) else { return };
        if channel.waits_for != Some(sequence) {
            return;
        }
        channel.waits_for = None;
        self.waiting -= 1;
        let began = channel.began.take().unwrap_or(now);
        self.made.push_back(Transfer {
            channel: number,
            began,
            bytes: Bytes(core::mem::take(&mut channel.bytes)),
        });
        channel.transfers = channel.transfers.map(|left| left.saturating_sub(1));
        if channel.transfers != Some(0) {
            channel.left = self.volume;
            self.ready.push_back(number);
            self.due = now;
        }
    }
}

impl Source for Unpaced {
    fn next_due(&self) -> Option<Time> {
        (!self.ready.is_empty() && self.due < self.stop).then_some(self.due)
    }

    fn produce(&mut self, now: Time, out: &mut MessageBuffer) {
        if now < self.due || self.next_due().is_none() {
            return;
        }
        self.due = now;
        if now >= self.stop {
            return;
        }
        let Some(number) = self.ready.pop_front() else { return };
        let channel = &mut self.channels[usize::from(number)];
        let size = channel.left.take(channel.sizes.draw());
        let last = channel.left.is_used_up();
        let asks = last && channel.transfers.is_some();
        out.push_zeros(number, now, size as usize, asks);
        channel.began.get_or_insert(now);
        channel.bytes += size;
        if asks {
            channel.waits_for = Some(channel.sequence);
            self.waiting += 1;
        } else if !last {
            self.ready.push_back(number);
        }
        channel.sequence = channel.sequence.wrapping_add(1);
    }

    fn notify(&mut self, now: Time, what: Feedback) {
        if let Feedback::Answered { channel, sequence } = what {
            self.answered(now, channel, sequence);
        }
        // A transport that was blocked until after the stop.
        if now >= self.stop {
            self.due = self.stop;
        }
    }

    fn is_finished(&self) -> bool {
        (self.ready.is_empty() && self.waiting == 0) || self.due >= self.stop
    }

    fn take_transfer(&mut self) -> Option<Transfer> {
        self.made.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use trunkline_core::schema::Value;
    use trunkline_core::{Bytes, Duration, Time};

    use crate::registry::find;
    use crate::source::{Feedback, MessageBuffer, Source, SourceContext, Transfer};
    use crate::testing::{build, constant, context, values};

    fn after(millis: u64) -> Time {
        context().start + Duration::from_millis(millis)
    }

    /// Everything that it sends at once: channel, length and whether an answer is asked for.
    fn sent(source: &mut dyn Source, now: Time) -> Vec<(u16, usize, bool)> {
        let mut buffer = MessageBuffer::with_headroom(0);
        while source.next_due().is_some_and(|due| due <= now) {
            source.produce(now, &mut buffer);
        }
        buffer.messages().iter().map(|message| (message.channel, message.range.len(), message.asks)).collect()
    }

    fn answer(source: &mut dyn Source, now: Time, channel: u16, sequence: u32) -> Option<Transfer> {
        source.notify(now, Feedback::Answered { channel, sequence });
        let transfer = source.take_transfer();
        assert_eq!(source.take_transfer(), None);
        transfer
    }

    const TWO_OF_20_KB: [(&str, Value); 2] =
        [("bytes", Value::Bytes(Bytes(20_000))), ("transfers", Value::Integer(2))];

    #[test]
    fn the_next_transfer_begins_when_the_last_message_is_answered() {
        let mut source = build("mpuke", &TWO_OF_20_KB, &context());
        let transfer = [(0, 8192, false), (0, 8192, false), (0, 3616, true)];
        assert_eq!(sent(&mut *source, after(0)), transfer);
        assert_eq!((source.next_due(), source.is_finished(), source.over_at()), (None, false, None));
        assert_eq!(answer(&mut *source, after(5), 0, 1), None, "not the last message's");
        assert_eq!(source.next_due(), None);

        let first = Transfer { channel: 0, began: after(0), bytes: Bytes(20_000) };
        assert_eq!(answer(&mut *source, after(9), 0, 2), Some(first));
        assert_eq!(source.next_due(), Some(after(9)));
        assert_eq!(answer(&mut *source, after(9), 0, 2), None, "a copy of an answer ends nothing");
        assert_eq!(sent(&mut *source, after(10)), transfer);
        assert!(!source.is_finished(), "the last transfer is not over before its answer");

        let second = Transfer { channel: 0, began: after(10), bytes: Bytes(20_000) };
        assert_eq!(answer(&mut *source, after(30), 0, 5), Some(second));
        assert!(source.is_finished());
        assert_eq!((source.next_due(), source.over_at()), (None, Some(Time::ZERO)));
    }

    #[test]
    fn channels_make_transfers_of_their_own() {
        let mut source = build("bulk", &TWO_OF_20_KB, &SourceContext { channels: 2, ..context() });
        assert_eq!(sent(&mut *source, after(0)).len(), 6);
        let one = answer(&mut *source, after(4), 1, 2);
        assert_eq!(one, Some(Transfer { channel: 1, began: after(0), bytes: Bytes(20_000) }));
        assert_eq!(sent(&mut *source, after(4)).iter().filter(|(channel, ..)| *channel == 1).count(), 3);
        assert_eq!(source.next_due(), None, "the other still waits");
        assert_eq!(answer(&mut *source, after(5), 7, 0), None, "there is no such channel");
    }

    #[test]
    fn nothing_begins_after_the_stop() {
        let mut source = build("bulk", &TWO_OF_20_KB, &SourceContext { stop: after(10), ..context() });
        sent(&mut *source, after(0));
        assert!(answer(&mut *source, after(10), 0, 2).is_some());
        assert_eq!((source.next_due(), source.is_finished()), (None, true));
    }

    #[test]
    fn transfers_need_a_volume_and_no_pace() {
        let refused = |given: &[(&'static str, Value)]| {
            (find("bulk").unwrap().1.build)(&values("bulk", given), &context()).err().unwrap_or_default()
        };
        let transfers = ("transfers", Value::Integer(3));
        assert!(refused(core::slice::from_ref(&transfers)).starts_with("`transfers` needs the volume"));
        let interval = ("interval", constant(Duration::from_millis(1)));
        let messages = ("messages", Value::Integer(3));
        assert!(refused(&[transfers, interval, messages]).contains("omit `interval`"));
    }
}
