//! The receive window: how much is announced (RFC 9293 section 3.8.6.2.2), how it grows with what the buffer can hold, and how
//! the buffer grows with what the application reads in a round trip (dynamic right-sizing, Fisk and Feng 2001).

use trunkline_core::{Duration, Time};

use super::{Receiver, Text};
use crate::tcp::config::{BufferConfig, TcpConfig};
use crate::tcp::segment::MAX_WINDOW_SCALE;

/// The largest window without scaling.
const UNSCALED: u64 = 65_535;
/// What surrounds a segment's data in Linux's memory.
const OVERHEAD: u64 = 832;

/// What is announced.
#[derive(Debug)]
pub(super) struct Window {
    /// How much may wait here, and how much at most one day.
    pub(super) buffer: u64,
    initial: u64,
    max: u64,
    /// The most that is announced.
    pub(super) clamp: u64,
    /// What is announced at present where the buffer is larger: it grows with what arrives.
    threshold: u64,
    /// The window that was announced last, and the place that was acknowledged then.
    pub(super) wnd: u64,
    pub(super) updated_at: u64,
    pub(super) scale: u8,
    pub(super) mss: u32,
    pub(super) tick: Duration,
    pub(super) has_sack: bool,
    /// Whether the peer was told of too little room to use.
    pub(super) is_closed: bool,
}

impl Window {
    pub(super) fn new(config: &TcpConfig) -> Window {
        let buffer = config.receive_buffer.initial as u64;
        Window {
            buffer,
            initial: buffer,
            max: config.receive_buffer.max as u64,
            clamp: buffer,
            threshold: buffer,
            wnd: 0,
            updated_at: 1,
            scale: 0,
            mss: config.mss as u32,
            tick: config.acks.tick,
            has_sack: false,
            is_closed: false,
        }
    }

    /// The shift that lets the largest buffer be announced (RFC 7323 section 2.3), as Linux computes it: from all of the
    /// buffer's memory.
    fn wanted_scale(&self) -> u8 {
        let buffer = BufferConfig { initial: self.initial as usize, max: self.max as usize };
        (buffer.memory().max(1).ilog2().saturating_sub(15) as u8).min(MAX_WINDOW_SCALE)
    }

    fn round_up(&self, window: u64) -> u64 {
        window.next_multiple_of(1 << self.scale)
    }
}

/// How much the application reads in a round trip.
#[derive(Debug, Default)]
pub(super) struct RightSizing {
    /// The round trip as the receiver sees it, zero without a sample; times 8.
    round_trip: Duration,
    /// When everything before this place has come, a window has passed since `since`.
    window_end: u64,
    since: Time,
    /// What was read in the last round trip that counts, and where and when this one began.
    space: u64,
    from: u64,
    at: Time,
}

impl RightSizing {
    pub(super) fn begin(&mut self, now: Time, read: u64, window: &Window) {
        (self.from, self.at) = (read, now);
        self.space = window.threshold.min(window.wnd).min(10 * u64::from(window.mss)).max(1);
    }

    /// Takes a sample of the round trip from a segment with data: the age of the echo of our time stamp, or else the time that
    /// a whole window took.
    pub(super) fn take(&mut self, now: Time, text: &Text<'_>, next: u64, window: &Window, mss: u32) {
        if self.window_end == 0 || next >= self.window_end {
            if self.window_end > 0 {
                self.sample(now.since(self.since).max(Duration::from_micros(1)), true);
            }
            (self.window_end, self.since) = (next + window.wnd, now);
        }
        if let Some(age) = text.echo_age.filter(|_| text.data.len() >= mss as usize) {
            self.sample(age.max(Duration::from_millis(1)), false);
        }
    }

    /// Windows may have waited for the application: of those the smallest counts.
    fn sample(&mut self, sample: Duration, is_window: bool) {
        let scaled = sample * 8;
        if self.round_trip.is_zero() || scaled < self.round_trip {
            self.round_trip = scaled;
        } else if !is_window {
            self.round_trip = self.round_trip - self.round_trip / 8 + sample;
        }
    }

    /// The application has read up to a place.
    pub(super) fn read(&mut self, now: Time, read: u64, window: &mut Window, config: &TcpConfig) {
        if self.round_trip.is_zero() || now.since(self.at) < self.round_trip / 8 {
            return;
        }
        let copied = read - self.from;
        if copied > self.space {
            if config.receive_buffer.initial < config.receive_buffer.max {
                self.grow(copied, window);
            }
            self.space = copied;
        }
        (self.from, self.at) = (read, now);
    }

    /// Twice what was read in the last round trip, more if that is growing: the window that is announced now serves the round
    /// trip after the next.
    fn grow(&self, copied: u64, window: &mut Window) {
        let mss = u64::from(window.mss);
        let steady = 2 * copied + 16 * mss;
        let growth = steady * (copied - self.space) / self.space.max(1);
        let wanted = (steady + 2 * growth).min(window.max);
        if wanted > window.buffer {
            (window.buffer, window.clamp) = (wanted, wanted);
        }
    }
}

impl Receiver {
    /// The window of a SYN, which is never scaled, and the shift that it offers.
    pub(in crate::tcp) fn announce_first(&mut self) -> (u16, u8) {
        let window = &mut self.window;
        let mss = u64::from(window.mss);
        let mut first = window.buffer;
        if !self.is_classic && first > mss {
            first -= first % mss;
        }
        window.wnd = first.min(UNSCALED);
        window.updated_at = self.next;
        (window.wnd as u16, window.wanted_scale())
    }

    /// The shift that our SYN offered.
    pub(in crate::tcp) fn offered_scale(&self) -> u8 {
        self.window.wanted_scale()
    }

    /// Both ends have agreed on a shift, 0 for none, and on selective acknowledgements.
    pub(in crate::tcp) fn agree(&mut self, scale: u8, has_sack: bool) {
        let window = &mut self.window;
        (window.scale, window.has_sack) = (scale, has_sack);
        window.clamp = window.clamp.min(UNSCALED << scale);
        window.threshold = if self.is_classic { window.clamp } else { window.wnd.min(window.clamp) };
    }

    /// Bytes that the peer may send now.
    pub(super) fn open_window(&self) -> u64 {
        (self.window.updated_at + self.window.wnd).saturating_sub(self.next)
    }

    /// The window to be announced with an acknowledgement that is sent now, as it stands in the header.
    pub(in crate::tcp) fn announce(&mut self) -> u16 {
        let open = self.open_window();
        let mut selected = self.selected_window();
        let free = self.window.buffer.saturating_sub(self.queued());
        if !self.is_classic && free < self.window.clamp.min(self.window.buffer) / 2 {
            self.acks.calm();
        }
        if selected < open {
            // A window never shrinks (RFC 9293 section 3.8.6.2.2).
            selected = self.window.round_up(open);
        }
        let window = &mut self.window;
        (window.wnd, window.updated_at) = (selected, self.next);
        window.is_closed = selected < u64::from(window.mss).min(window.buffer / 2).max(1);
        (selected.min(UNSCALED << window.scale) >> window.scale) as u16
    }

    /// The window that the buffer has room for: none rather than a little.
    pub(super) fn selected_window(&self) -> u64 {
        let window = &self.window;
        if self.is_classic {
            let free = window.clamp.saturating_sub(self.readable() as u64);
            let least = u64::from(window.mss).min(window.buffer / 2).max(1);
            // Less than a unit of the scaled window would be announced as none, and nothing would ever open it.
            return if free < least { 0 } else { free.max(1 << window.scale) };
        }
        let full = window.clamp.min(window.buffer);
        let mss = u64::from(self.acks.mss).min(full).min(window.threshold);
        let mut free = window.buffer.saturating_sub(self.queued());
        if free < full / 2 {
            free -= free % (1 << window.scale);
            if free < window.buffer / 16 || free < mss {
                return 0;
            }
        }
        free = free.min(window.threshold);
        if window.scale > 0 {
            return window.round_up(free);
        }
        // Whole segments, as long as the old window is not about the same.
        if window.wnd + mss <= free || window.wnd > free {
            free - free % mss.max(1)
        } else if mss == full && free > window.wnd + full / 2 {
            free
        } else {
            window.wnd
        }
    }

    /// How much larger the window has become than was announced.
    pub(super) fn classic_gain(&self) -> u64 {
        let edge = self.read + self.window.clamp;
        edge.saturating_sub(self.window.updated_at + self.window.wnd)
    }

    /// Lets the window follow what arrives: two segments for one, unless segments are so small that memory holds little more
    /// than what surrounds them. Returns whether it grew.
    pub(super) fn grow_window(&mut self, length: usize) -> bool {
        let free = self.window.buffer.saturating_sub(self.queued());
        let window = &mut self.window;
        let room = window.clamp.min(free).saturating_sub(window.threshold);
        if room == 0 {
            return false;
        }
        let length = length as u64;
        let memory = (length + OVERHEAD) / 2;
        let mut growth = 2 * u64::from(window.mss);
        if memory > length {
            growth = 0;
            let (mut memory, mut limit) = (memory / 2, window.max / 2);
            while window.threshold <= limit {
                if memory <= length {
                    growth = 2 * u64::from(self.acks.mss);
                    break;
                }
                (memory, limit) = (memory / 2, limit / 2);
            }
        }
        if growth == 0 {
            return false;
        }
        window.threshold += growth.max(2 * length).min(room);
        true
    }
}
