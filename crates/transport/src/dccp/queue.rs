//! Messages that wait until congestion control lets them out: DCCP drops what is no longer useful instead of letting
//! everything behind it be late.

use std::collections::VecDeque;

use trunkline_core::schema::Limit;
use trunkline_core::{Bytes, Duration, Time};

use super::config::WhenFull;

/// The send queue, with its policy.
#[derive(Clone, Debug)]
pub(super) struct SendQueue {
    limit: Limit,
    when_full: WhenFull,
    lifetime: Option<Duration>,
    bytes: Vec<u8>,
    /// Bytes at the front that have been taken.
    taken: usize,
    entries: VecDeque<Entry>,
    /// What was dropped, and why.
    pub(super) dropped: Dropped,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    length: usize,
    joined: Time,
}

/// Messages that were dropped at the sender, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dropped {
    pub(super) newest: u64,
    pub(super) oldest: u64,
    pub(super) expired: u64,
    /// Waiting when the conversation ended.
    pub(super) unsent: u64,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joined {
    Yes,
    Dropped,
    Refused,
}

impl SendQueue {
    pub(super) fn new(limit: Limit, when_full: WhenFull, lifetime: Option<Duration>) -> SendQueue {
        SendQueue {
            limit,
            when_full,
            lifetime,
            bytes: Vec::new(),
            taken: 0,
            entries: VecDeque::new(),
            dropped: Dropped::default(),
        }
    }

    /// Lets a message join at the end, if the policy does.
    pub(super) fn push(&mut self, now: Time, message: &[u8]) -> Joined {
        self.expire(now);
        while !self.has_room(message.len()) {
            match self.when_full {
                WhenFull::Refuse => return Joined::Refused,
                WhenFull::DropNewest => {
                    self.dropped.newest += 1;
                    return Joined::Dropped;
                }
                WhenFull::DropOldest => {
                    self.skip();
                    self.dropped.oldest += 1;
                }
            }
        }
        self.compact();
        self.bytes.extend_from_slice(message);
        self.entries.push_back(Entry { length: message.len(), joined: now });
        Joined::Yes
    }

    /// The length of the next message.
    pub(super) fn front(&self) -> Option<usize> {
        Some(self.entries.front()?.length)
    }

    /// Appends the next message to `into` and forgets it.
    pub(super) fn pop(&mut self, into: &mut Vec<u8>) {
        if let Some(Entry { length, .. }) = self.entries.pop_front() {
            into.extend_from_slice(&self.bytes[self.taken..self.taken + length]);
            self.taken += length;
        }
    }

    /// The bytes of the next message.
    pub(super) fn peek(&self) -> &[u8] {
        let length = self.front().unwrap_or(0);
        &self.bytes[self.taken..self.taken + length]
    }

    /// Drops what has waited longer than it is useful.
    pub(super) fn expire(&mut self, now: Time) {
        while self.next_expiry().is_some_and(|at| at <= now) {
            self.skip();
            self.dropped.expired += 1;
        }
    }

    /// When the next message expires.
    pub(super) fn next_expiry(&self) -> Option<Time> {
        // At the end of its lifetime a message is still of use; just after it is not.
        Some(self.entries.front()?.joined + self.lifetime? + Duration::from_nanos(1))
    }

    /// Drops everything: the conversation is over.
    pub(super) fn clear(&mut self) {
        self.dropped.unsent += self.entries.len() as u64;
        self.entries.clear();
        self.bytes.clear();
        self.taken = 0;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether a message of `length` bytes fits: within the limit, or as the only one.
    pub(super) fn has_room(&self, length: usize) -> bool {
        let waiting = Bytes((self.bytes.len() - self.taken) as u64);
        self.is_empty() || self.limit.admits(self.entries.len() as u64, waiting, Bytes(length as u64))
    }

    fn skip(&mut self) {
        if let Some(Entry { length, .. }) = self.entries.pop_front() {
            self.taken += length;
        }
    }

    /// Makes the taken front free again once it is at least half of all: every byte is moved at most once on average.
    fn compact(&mut self) {
        if self.bytes.len() <= 2 * self.taken {
            self.bytes.copy_within(self.taken.., 0);
            self.bytes.truncate(self.bytes.len() - self.taken);
            self.taken = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(queue: &mut SendQueue) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while queue.front().is_some() {
            let mut message = Vec::new();
            queue.pop(&mut message);
            all.push(message);
        }
        all
    }

    #[test]
    fn a_full_queue_does_what_its_policy_says() {
        let limit = Limit::Packets(2);
        for (policy, joined, left, dropped) in [
            (WhenFull::Refuse, Joined::Refused, [b"a", b"b"], Dropped::default()),
            (
                WhenFull::DropNewest,
                Joined::Dropped,
                [b"a", b"b"],
                Dropped { newest: 1, ..Dropped::default() },
            ),
            (WhenFull::DropOldest, Joined::Yes, [b"b", b"c"], Dropped { oldest: 1, ..Dropped::default() }),
        ] {
            let mut queue = SendQueue::new(limit, policy, None);
            assert_eq!(queue.push(Time::ZERO, b"a"), Joined::Yes);
            assert_eq!(queue.push(Time::ZERO, b"b"), Joined::Yes);
            assert_eq!(queue.push(Time::ZERO, b"c"), joined, "{policy:?}");
            assert_eq!(waiting(&mut queue), left, "{policy:?}");
            assert_eq!(queue.dropped, dropped, "{policy:?}");
        }
    }

    #[test]
    fn bytes_limit_it_too_but_one_message_always_fits() {
        let mut queue = SendQueue::new(Limit::Bytes(Bytes(10)), WhenFull::Refuse, None);
        assert_eq!(queue.push(Time::ZERO, &[0; 100]), Joined::Yes);
        assert_eq!(queue.push(Time::ZERO, &[0; 1]), Joined::Refused);
        assert_eq!(waiting(&mut queue).len(), 1);
        assert_eq!(queue.push(Time::ZERO, &[0; 6]), Joined::Yes);
        assert_eq!(queue.push(Time::ZERO, &[0; 4]), Joined::Yes);
        assert_eq!(queue.push(Time::ZERO, &[0; 1]), Joined::Refused);
    }

    #[test]
    fn a_message_is_useful_until_the_end_of_its_lifetime() {
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        let lifetime = Some(Duration::from_millis(20));
        let mut queue = SendQueue::new(Limit::Packets(9), WhenFull::Refuse, lifetime);
        queue.push(at(0), b"a");
        queue.push(at(5), b"b");
        queue.expire(at(20));
        assert_eq!((queue.front(), queue.dropped.expired), (Some(1), 0));
        assert_eq!(queue.next_expiry(), Some(at(20) + Duration::from_nanos(1)));
        queue.expire(at(21));
        assert_eq!((waiting(&mut queue), queue.dropped.expired), (vec![b"b".to_vec()], 1));
        queue.push(at(22), b"c");
        queue.clear();
        assert_eq!((queue.next_expiry(), queue.dropped.unsent), (None, 1));
    }
}
