//! The files of one link, one for each of its ends.
//!
//! A packet's comment stands beside it in the file, so that one that enters a link is written when its fate is known; until
//! then those behind it wait too, for a file is in the order of time.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use trunkline_core::{PacketId, Time};
use trunkline_io::MonotonicClock;

use super::log::{Batch, Seen, What};
use super::pcapng::{self, CapturedPacket, LinkType, Way};

/// Bytes that wait for the fate of the first of them, at most.
const MOST_PENDING: usize = 64 << 20;

/// The files of one link.
#[derive(Debug)]
pub(super) struct Ends {
    clock: MonotonicClock,
    /// Of the calendar's clock, ahead of the monotonic one.
    offset: i64,
    ends: Vec<End>,
    /// Packets in the link: by number, the end where they entered and the place in its order.
    inside: BTreeMap<PacketId, (usize, u64)>,
}

/// The file of one end.
#[derive(Debug)]
struct End {
    path: PathBuf,
    file: File,
    pending: VecDeque<Pending>,
    pending_bytes: usize,
    /// How many were pending before the first that is.
    first: u64,
    /// What is to be written next.
    out: Vec<u8>,
    /// How much is.
    written: u64,
    seen: u64,
    missed: u64,
    last: Time,
}

#[derive(Debug)]
struct Pending {
    at: Time,
    bytes: Vec<u8>,
    way: Way,
    id: PacketId,
    /// Whether its fate is known.
    settled: bool,
    comment: Option<String>,
}

/// What the file of a link's end at a host is called.
pub(super) fn file_name(link: &str, host: &str) -> String {
    format!("{link}-{host}.pcapng")
}

impl Ends {
    /// Makes the files `LINK-HOST.pcapng`, one for each host.
    pub(super) fn create(
        directory: &Path,
        link: &str,
        hosts: &[String],
        link_type: LinkType,
        clock: MonotonicClock,
    ) -> Result<Ends, (PathBuf, io::Error)> {
        let end = |host: &String| {
            let path = directory.join(file_name(link, host));
            let mut out = Vec::new();
            pcapng::begin(&mut out, link, &format!("the end of link `{link}` at host `{host}`"), link_type);
            match File::create(&path) {
                Ok(file) => Ok(End::new(path, file, out)),
                Err(error) => Err((path, error)),
            }
        };
        let ends = hosts.iter().map(end).collect::<Result<_, _>>()?;
        let offset = trunkline_io::clock::realtime_offset();
        Ok(Ends { clock, offset, ends, inside: BTreeMap::new() })
    }

    /// Takes what the relay saw, and writes what is known.
    pub(super) fn take(&mut self, batch: &Batch) -> Result<(), (PathBuf, io::Error)> {
        for seen in &batch.seen {
            self.see(seen, &batch.bytes);
        }
        for (end, missed) in self.ends.iter_mut().zip(&batch.missed) {
            end.missed += missed;
        }
        self.write(false)
    }

    /// Writes all that is left.
    pub(super) fn finish(&mut self) -> Result<(), (PathBuf, io::Error)> {
        self.write(true)?;
        for end in &mut self.ends {
            let at = epoch(self.clock, self.offset, end.last);
            pcapng::end(&mut end.out, at, end.seen + end.missed, end.missed);
            end.write()?;
        }
        Ok(())
    }

    fn see(&mut self, seen: &Seen, bytes: &[u8]) {
        let Seen { what, at, id, .. } = *seen;
        let here = usize::from(seen.port.0);
        let frame = || bytes[seen.frame.clone()].to_vec();
        match what {
            What::Arrived => {
                let Some(end) = self.ends.get_mut(here) else { return };
                let place = end.first + end.pending.len() as u64;
                end.push(Pending {
                    at,
                    bytes: frame(),
                    way: Way::Outbound,
                    id,
                    settled: false,
                    comment: None,
                });
                self.inside.insert(id, (here, place));
            }
            What::Delivered => {
                self.settle(id, None);
                let Some(end) = self.ends.get_mut(here) else { return };
                end.push(Pending { at, bytes: frame(), way: Way::Inbound, id, settled: true, comment: None });
            }
            What::Dropped(cause) => self.settle(id, Some((at, cause))),
        }
    }

    fn settle(&mut self, id: PacketId, drop: Option<(Time, &'static str)>) {
        let Some((end, place)) = self.inside.remove(&id) else { return };
        if let Some(pending) = self.ends[end].pending_at(place) {
            pending.settled = true;
            pending.comment = drop.map(|(at, cause)| match at.since(pending.at) {
                after if after.is_zero() => format!("dropped by the link: {cause}"),
                after => format!("dropped by the link after {after}: {cause}"),
            });
        }
    }

    fn write(&mut self, everything: bool) -> Result<(), (PathBuf, io::Error)> {
        for end in &mut self.ends {
            while let Some(first) = end.pending.front() {
                if !first.settled {
                    if !everything && end.pending_bytes <= MOST_PENDING {
                        break;
                    }
                    // Its fate comes too late.
                    self.inside.remove(&first.id);
                }
                let packet = CapturedPacket {
                    at: epoch(self.clock, self.offset, first.at),
                    bytes: &first.bytes,
                    way: first.way,
                    id: first.id.0,
                    comment: first.comment.as_deref(),
                };
                pcapng::packet(&mut end.out, &packet);
                end.pop();
            }
            end.write()?;
        }
        Ok(())
    }
}

fn epoch(clock: MonotonicClock, offset: i64, at: Time) -> pcapng::Epoch {
    clock.to_raw(at).saturating_add_signed(offset)
}

impl End {
    fn new(path: PathBuf, file: File, out: Vec<u8>) -> End {
        let (seen, missed, last) = (0, 0, Time::ZERO);
        End {
            path,
            file,
            pending: VecDeque::new(),
            pending_bytes: 0,
            first: 0,
            out,
            written: 0,
            seen,
            missed,
            last,
        }
    }

    fn push(&mut self, pending: Pending) {
        self.seen += 1;
        self.last = self.last.max(pending.at);
        self.pending_bytes += pending.bytes.len();
        self.pending.push_back(pending);
    }

    fn pop(&mut self) {
        if let Some(pending) = self.pending.pop_front() {
            self.pending_bytes -= pending.bytes.len();
            self.first += 1;
        }
    }

    fn pending_at(&mut self, place: u64) -> Option<&mut Pending> {
        self.pending.get_mut(usize::try_from(place.checked_sub(self.first)?).ok()?)
    }

    fn write(&mut self) -> Result<(), (PathBuf, io::Error)> {
        if let Err(error) = self.file.write_all(&self.out) {
            // Without half a packet at its end it can be read; if even that is refused, it has one.
            let _ = self.file.set_len(self.written);
            return Err((self.path.clone(), error));
        }
        self.written += self.out.len() as u64;
        self.out.clear();
        Ok(())
    }
}
