//! Stretches of samples on their way between a callback of the sound card and the thread of the network. Neither ever
//! waits for the other, and nothing is allocated once the ring is made: a stretch that finds no room is left out.

use rtrb::{Consumer, Producer, RingBuffer};

/// How much a ring holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Stretches.
    pub(super) stretches: usize,
    /// Samples of the longest.
    pub(super) longest: usize,
    /// Samples of all.
    pub(super) samples: usize,
}

/// A ring of stretches, each with a head that says what it is.
pub(super) fn ring<H: Copy>(room: Room) -> (Writer<H>, Reader<H>) {
    let (heads_in, heads) = RingBuffer::new(room.stretches);
    let (samples_in, samples) = RingBuffer::new(room.samples.max(room.longest));
    let stretch = vec![0.0; room.longest];
    (
        Writer { heads: heads_in, samples: samples_in, longest: room.longest },
        Reader { heads, samples, stretch },
    )
}

/// The end that stretches are put into.
pub(super) struct Writer<H> {
    heads: Producer<(H, usize)>,
    samples: Producer<f32>,
    longest: usize,
}

impl<H: Copy> Writer<H> {
    /// Puts a stretch in, all of it or nothing; says whether there was room.
    pub(super) fn write(&mut self, head: H, samples: &[f32]) -> bool {
        // The samples first: whoever sees the head finds them.
        samples.len() <= self.longest
            && !self.heads.is_full()
            && self.samples.push_entire_slice(samples).is_ok()
            && self.heads.push((head, samples.len())).is_ok()
    }
}

/// The end that stretches come out of, in their order.
pub(super) struct Reader<H> {
    heads: Consumer<(H, usize)>,
    samples: Consumer<f32>,
    stretch: Vec<f32>,
}

impl<H: Copy> Reader<H> {
    /// Takes the next stretch out, if there is one.
    pub(super) fn read(&mut self) -> Option<(H, &[f32])> {
        let (head, length) = self.heads.pop().ok()?;
        let stretch = self.stretch.get_mut(..length)?;
        self.samples.pop_entire_slice(stretch).ok()?;
        Some((head, stretch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { stretches: 3, longest: 4, samples: 8 };

    #[test]
    fn stretches_come_out_as_they_went_in() {
        let (mut writer, mut reader) = ring(ROOM);
        for round in 0..20u8 {
            let samples = [f32::from(round); 4];
            let length = usize::from(round % 5);
            assert!(writer.write(round, &samples[..length]));
            assert_eq!(reader.read(), Some((round, &samples[..length])));
            assert_eq!(reader.read(), None);
        }
    }

    #[test]
    fn what_finds_no_room_is_left_out_whole() {
        let (mut writer, mut reader) = ring(ROOM);
        assert!(!writer.write('x', &[0.0; 5]), "longer than agreed on");
        assert!(writer.write('a', &[0.1; 4]));
        assert!(writer.write('b', &[0.2; 3]));
        assert!(!writer.write('x', &[0.3; 2]), "two samples where one fits");
        assert!(writer.write('c', &[0.4; 1]));
        assert!(!writer.write('x', &[]), "a fourth stretch");
        for (name, samples) in [('a', &[0.1; 4][..]), ('b', &[0.2; 3]), ('c', &[0.4; 1])] {
            assert_eq!(reader.read(), Some((name, samples)));
        }
        assert_eq!(reader.read(), None);
    }

    #[test]
    fn the_ends_may_be_in_two_threads() {
        let (mut writer, mut reader) = ring(Room { stretches: 8, longest: 3, samples: 20 });
        let writing = std::thread::spawn(move || {
            for number in 0..20_000u32 {
                while !writer.write(number, &[number as f32; 3][..number as usize % 4]) {
                    std::thread::yield_now();
                }
            }
        });
        for number in 0..20_000u32 {
            let (head, length, same) = loop {
                match reader.read() {
                    Some((head, samples)) => {
                        break (head, samples.len(), samples.iter().all(|&s| s == number as f32));
                    }
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!((head, length, same), (number, number as usize % 4, true));
        }
        writing.join().unwrap();
    }
}
