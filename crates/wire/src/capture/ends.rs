//! The files of one link, one for each of its ends.
//!
//! A file is in the order of time. The relay sees what enters over a moment before what leaves over the same moment, so that
//! packets are sorted here and written once the relay has passed their time. A packet's comment stands beside it in the file:
//! one that enters a link is written when its fate is known, and those behind it wait.

use std::collections::BTreeMap;
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
    inside: BTreeMap<PacketId, (usize, Place)>,
    /// Nothing earlier is still to come.
    passed: Time,
}

/// A packet's place in a file: its time, and its number among all that were seen at this end.
type Place = (Time, u64);

/// The file of one end.
#[derive(Debug)]
struct End {
    path: PathBuf,
    file: File,
    pending: BTreeMap<Place, Pending>,
    pending_bytes: usize,
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
        Ok(Ends { clock, offset, ends, inside: BTreeMap::new(), passed: Time::ZERO })
    }

    /// The files, to be named.
    pub(super) fn files(&self) -> impl Iterator<Item = String> {
        self.ends.iter().map(|end| end.path.display().to_string())
    }

    /// Takes what the relay saw, and writes what is known.
    pub(super) fn take(&mut self, batch: &Batch) -> Result<(), (PathBuf, io::Error)> {
        for seen in &batch.seen {
            self.see(seen, &batch.bytes);
        }
        for (end, missed) in self.ends.iter_mut().zip(&batch.missed) {
            end.missed += missed;
        }
        self.passed = self.passed.max(batch.passed);
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
                let packet =
                    Pending { bytes: frame(), way: Way::Outbound, id, settled: false, comment: None };
                let place = end.push(at, packet);
                self.inside.insert(id, (here, place));
            }
            What::Delivered => {
                self.settle(id, None);
                let Some(end) = self.ends.get_mut(here) else { return };
                end.push(at, Pending { bytes: frame(), way: Way::Inbound, id, settled: true, comment: None });
            }
            What::Dropped(cause) => self.settle(id, Some((at, cause))),
        }
    }

    fn settle(&mut self, id: PacketId, drop: Option<(Time, &'static str)>) {
        let Some((end, place)) = self.inside.remove(&id) else { return };
        if let Some(pending) = self.ends[end].pending.get_mut(&place) {
            pending.settled = true;
            pending.comment = drop.map(|(at, cause)| match at.since(place.0) {
                after if after.is_zero() => format!("dropped by the link: {cause}"),
                after => format!("dropped by the link after {after}: {cause}"),
            });
        }
    }

    fn write(&mut self, everything: bool) -> Result<(), (PathBuf, io::Error)> {
        for end in &mut self.ends {
            while let Some(entry) = end.pending.first_entry() {
                let &(at, _) = entry.key();
                if at > self.passed && !everything {
                    break;
                }
                if !entry.get().settled {
                    if !everything && end.pending_bytes <= MOST_PENDING {
                        break;
                    }
                    // Its fate comes too late.
                    self.inside.remove(&entry.get().id);
                }
                let packet = entry.remove();
                end.pending_bytes -= packet.bytes.len();
                let packet = CapturedPacket {
                    at: epoch(self.clock, self.offset, at),
                    bytes: &packet.bytes,
                    way: packet.way,
                    id: packet.id.0,
                    comment: packet.comment.as_deref(),
                };
                pcapng::packet(&mut end.out, &packet);
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
        End { path, file, pending: BTreeMap::new(), pending_bytes: 0, out, written: 0, seen, missed, last }
    }

    fn push(&mut self, at: Time, pending: Pending) -> Place {
        let place = (at, self.seen);
        self.seen += 1;
        self.last = self.last.max(at);
        self.pending_bytes += pending.bytes.len();
        self.pending.insert(place, pending);
        place
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
