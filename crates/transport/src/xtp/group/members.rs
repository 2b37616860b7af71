//! The receivers of a reliable multicast stream, as its sender knows them.

use trunkline_core::{Address, Time};

use super::super::wait::reaches;
use super::super::wire::Key;

/// One active receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) address: Address,
    /// The receiver's own key.
    pub(super) key: Key,
    /// All bytes below this number are there.
    pub(super) rseq: u64,
    /// Bytes below this number may be sent.
    pub(super) alloc: u64,
    /// The highest sync it has seen.
    pub(super) echo: u32,
    /// Since when it owes an answer.
    pub(super) silent_since: Option<Time>,
    /// It has everything, and knows that it is over (RCLOSE).
    pub(super) finished: bool,
}

/// All active receivers, in the order of their addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    members: Vec<Member>,
    /// The request that all of them are to answer.
    requested: u32,
    /// How many have not answered it.
    owing: usize,
}

impl Members {
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn get(&mut self, address: Address) -> Option<&mut Member> {
        let index = self.find(address).ok()?;
        Some(&mut self.members[index])
    }

    /// Adds a receiver, who owes nothing yet.
    pub(super) fn add(&mut self, member: Member) {
        if let Err(index) = self.find(member.address) {
            self.members.insert(index, Member { echo: self.requested, ..member });
        }
    }

    pub(super) fn remove(&mut self, address: Address) -> Option<Member> {
        let index = self.find(address).ok()?;
        let member = self.members.remove(index);
        self.owing -= usize::from(!reaches(member.echo, self.requested));
        Some(member)
    }

    /// All are asked; what is not answered from now on is owed.
    pub(super) fn ask(&mut self, number: u32) {
        self.requested = number;
        self.owing = self.members.iter().filter(|member| !reaches(member.echo, number)).count();
    }

    /// A receiver has seen `echo`.
    pub(super) fn answer(&mut self, address: Address, echo: u32) {
        let requested = self.requested;
        let Some(member) = self.get(address) else { return };
        let owed = !reaches(member.echo, requested);
        if reaches(echo, member.echo) {
            member.echo = echo;
        }
        let owes = !reaches(member.echo, requested);
        if !owes {
            member.silent_since = None;
        }
        self.owing -= usize::from(owed && !owes);
    }

    /// Whether anybody owes an answer.
    pub(super) fn any_owing(&self) -> bool {
        self.owing > 0
    }

    /// Those who owe one.
    pub(super) fn owing(&mut self) -> impl Iterator<Item = &mut Member> {
        let requested = self.requested;
        self.members.iter_mut().filter(move |member| !reaches(member.echo, requested))
    }

    /// What all of them have, and what the slowest allows.
    pub(super) fn slowest(&self) -> Option<(u64, u64)> {
        let rseq = self.members.iter().map(|member| member.rseq).min()?;
        let alloc = self.members.iter().map(|member| member.alloc).min()?;
        Some((rseq, alloc))
    }

    /// Whether all of them have everything.
    pub(super) fn all_finished(&self) -> bool {
        self.members.iter().all(|member| member.finished)
    }

    fn find(&self, address: Address) -> Result<usize, usize> {
        self.members.binary_search_by_key(&address, |member| member.address)
    }
}
