//! The messages of time travel and of vhost-user, and the device behind them, as a kernel's driver uses it.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;

use proptest::prelude::*;
use trunkline_kernel::device::Device;
use trunkline_kernel::time_travel::{LENGTH, Message, Operation};
use trunkline_kernel::vhost::{HEADER, Header, Region, Request, call};

proptest! {
    #[test]
    fn a_message_of_the_clock_is_read_as_it_is_written(bytes: [u8; LENGTH], code in 0u32..12) {
        let mut bytes = bytes;
        bytes[..4].copy_from_slice(&code.to_ne_bytes());
        match Message::read(&bytes) {
            Ok(message) => prop_assert_eq!(message.bytes(), bytes),
            Err(unknown) => prop_assert!(unknown == code && code > 8),
        }
    }

    #[test]
    fn an_acknowledgement_repeats_the_number(number: u32, time: u64, answer: u64) {
        let asked = Message { operation: Operation::Get, number, time };
        let answered = Message { operation: Operation::Acknowledge, number, time: answer };
        prop_assert_eq!(asked.acknowledge(answer), answered);
    }

    /// Whatever a driver sends is a request or an error, and no request reads beyond its payload.
    #[test]
    fn no_message_of_a_driver_is_too_much(
        header: [u8; HEADER],
        request in 0u32..40,
        payload in prop::collection::vec(any::<u8>(), 0..128),
    ) {
        let mut header = header;
        header[..4].copy_from_slice(&request.to_ne_bytes());
        header[4..8].copy_from_slice(&1u32.to_ne_bytes());
        if let Ok(header) = Header::read(&header) {
            let _ = Request::read(&header, &payload);
        }
    }

    /// Nothing that a driver writes into its own memory makes the device read outside of it.
    #[test]
    fn queues_with_anything_in_them_are_read_or_refused(
        memory in prop::collection::vec(any::<u8>(), SIZE as usize),
        heads in prop::collection::vec(0u16..8, 1..8),
        kicks in 1usize..3,
    ) {
        let mut driver = Driver::new(&memory);
        for head in heads {
            driver.make_available(1, head);
        }
        for _ in 0..kicks {
            let _ = driver.device.handle(Request::Kick(1), None);
            let _ = driver.device.receive(&[7; 14], &[9; 100]);
        }
        prop_assert!(driver.device.sent().all(|frame| frame.len() <= 65_549));
    }
}

#[test]
fn an_interrupt_names_its_queue_and_wants_an_answer() {
    let words: Vec<u32> =
        call(1).chunks(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]])).collect();
    assert_eq!(words, [4, 1 | 1 << 3, 8, 1, 0]);
}

#[test]
fn a_frame_of_the_driver_is_sent_and_one_of_the_network_received() {
    let mut driver = Driver::new(&[0; SIZE as usize]);
    let frame: Vec<u8> = (0..60).collect();
    driver.write(BUFFERS + 12, &frame);
    driver.describe(1, 0, BUFFERS, 72, false);
    driver.make_available(1, 0);
    let answer = driver.device.handle(Request::Kick(1), None).expect("a kick of a sound queue");
    assert_eq!(answer.call, Some(1));
    assert_eq!(driver.device.sent().collect::<Vec<_>>(), [frame]);

    // Without a buffer of the driver, a packet is lost.
    assert_eq!(driver.device.receive(&[7; 14], &[9; 100]).expect("a sound queue"), None);
    driver.describe(0, 0, BUFFERS + 0x800, 1600, true);
    driver.make_available(0, 0);
    assert_eq!(driver.device.receive(&[7; 14], &[9; 100]).expect("a sound queue"), Some(0));
    let received = driver.read(BUFFERS + 0x800, 12 + 14 + 100);
    assert_eq!(received[10..12], [1, 0]);
    assert_eq!((&received[12..26], &received[26..]), (&[7; 14][..], &[9; 100][..]));
}

#[test]
fn a_driver_with_event_indices_is_notified_of_the_entry_that_it_names() {
    let mut driver = Driver::new(&[0; SIZE as usize]);
    driver.device.handle(Request::SetFeatures(1 << 32 | 1 << 29), None).expect("features");
    let (used, available) = (BASE + QUEUE + 0x400, BASE + QUEUE + 0x200);
    driver.write(available + 4 + 2 * u64::from(ENTRIES), &1u16.to_le_bytes());
    for (number, wanted) in [(0, None), (1, Some(1)), (2, None)] {
        driver.describe(1, number.into(), BUFFERS, 72, false);
        driver.make_available(1, number);
        let answer = driver.device.handle(Request::Kick(1), None).expect("a kick of a sound queue");
        assert_eq!(answer.call, wanted, "entry {number}");
        // The device asks for a kick with the next entry.
        assert_eq!(driver.read(used + 4 + 8 * u64::from(ENTRIES), 2), [number as u8 + 1, 0]);
    }
}

#[test]
fn a_frame_in_two_parts_is_one_frame() {
    let mut driver = Driver::new(&[0; SIZE as usize]);
    let frame: Vec<u8> = (0..60).collect();
    driver.write(BUFFERS + 12, &frame[..20]);
    driver.write(BUFFERS + 0x800, &frame[20..]);
    driver.describe(1, 0, BUFFERS, 32, false);
    driver.describe(1, 5, BUFFERS + 0x800, 40, false);
    // The first goes on with the fifth.
    driver.write(BASE + QUEUE + 12, &[1, 0, 5, 0]);
    driver.make_available(1, 0);
    driver.device.handle(Request::Kick(1), None).expect("a kick of a sound queue");
    assert_eq!(driver.device.sent().collect::<Vec<_>>(), [frame]);

    // A chain without end is refused.
    driver.write(BASE + QUEUE + 16 * 5 + 12, &[1, 0, 0, 0]);
    driver.make_available(1, 0);
    assert!(driver.device.handle(Request::Kick(1), None).is_err());
}

#[test]
fn a_driver_reads_the_address_and_the_largest_packet() {
    let mut device = Device::new([2, 0, 0, 0, 0, 9], 1400);
    let reply = device.handle(Request::GetConfiguration(12), None).expect("a configuration").reply;
    assert_eq!(reply.expect("a reply")[12..], [2, 0, 0, 0, 0, 9, 0, 0, 1, 0, 0x78, 5]);
}

#[test]
fn a_queue_outside_of_the_memory_is_refused() {
    let mut driver = Driver::new(&[0; SIZE as usize]);
    let rings = [BASE + SIZE, BASE + SIZE, BASE + SIZE];
    driver.device.handle(Request::SetAddress { queue: 0, rings }, None).expect("aligned addresses");
    assert!(driver.device.handle(Request::SetEnabled(0, true), None).is_err());
    assert!(driver.device.handle(Request::Kick(2), None).is_err());
}

/// A queue that is switched on before the memory is known was compared with nothing.
#[test]
fn a_queue_without_memory_stays_off() {
    let driver = Driver::new(&[0; SIZE as usize]);
    let mut device = Device::new([2, 0, 0, 0, 0, 9], 1500);
    let mut ask = |request, file| device.handle(request, file);
    ask(Request::SetSize(1, u32::from(ENTRIES)), None).expect("a size");
    ask(Request::SetAddress { queue: 1, rings: [u64::MAX; 3] }, None).expect("addresses");
    ask(Request::SetEnabled(1, true), None).expect("nothing to compare them with");
    let region = Region { address: BASE, size: SIZE, offset: 0 };
    ask(Request::SetMemory(vec![region]), Some(driver.file)).expect("memory");
    assert_eq!(ask(Request::Kick(1), None).expect("a queue that is off").call, None);
    let regions = ask(Request::SetMemory(vec![region; 2]), None).expect_err("two regions").to_string();
    assert!(regions.contains("2 memory regions; expected one, with its file"), "{regions}");
}

const BASE: u64 = 0x10_000;
const SIZE: u64 = 0x4000;
/// Descriptors, available ring and used ring of a queue, one queue behind the other; then buffers.
const QUEUE: u64 = 0x800;
const BUFFERS: u64 = BASE + 0x2000;
const ENTRIES: u16 = 8;

/// A kernel's driver: memory that is shared by a file, and queues in it.
struct Driver {
    device: Device,
    file: File,
    available: [u16; 2],
}

impl Driver {
    fn new(memory: &[u8]) -> Driver {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(memory).expect("memory");
        file.seek(SeekFrom::Start(0)).expect("memory");
        let mut device = Device::new([2, 0, 0, 0, 0, 9], 1500);
        let mut ask = |request, file| device.handle(request, file).expect("what every driver asks for");
        ask(Request::SetFeatures(1 << 32), None);
        let region = Region { address: BASE, size: SIZE, offset: 0 };
        ask(Request::SetMemory(vec![region]), Some(file.try_clone().expect("the file")));
        for queue in [0, 1] {
            let at = BASE + QUEUE * u64::from(queue);
            ask(Request::SetSize(queue, u32::from(ENTRIES)), None);
            ask(Request::SetBase(queue, 0), None);
            ask(Request::SetAddress { queue, rings: [at, at + 0x400, at + 0x200] }, None);
            ask(Request::SetEnabled(queue, true), None);
        }
        let mut driver = Driver { device, file, available: [0; 2] };
        for queue in [0, 1] {
            driver.write(BASE + QUEUE * queue + 0x200, &[0; 4]);
        }
        driver
    }

    fn describe(&mut self, queue: u64, number: u64, address: u64, length: u32, for_device: bool) {
        let at = BASE + QUEUE * queue + 16 * number;
        let flags = if for_device { 2u16 } else { 0 };
        let descriptor: Vec<u8> =
            [&address.to_le_bytes()[..], &length.to_le_bytes(), &flags.to_le_bytes(), &[0; 2]].concat();
        self.write(at, &descriptor);
    }

    fn make_available(&mut self, queue: usize, head: u16) {
        let ring = BASE + QUEUE * queue as u64 + 0x200;
        let place = self.available[queue] % ENTRIES;
        self.write(ring + 4 + 2 * u64::from(place), &head.to_le_bytes());
        self.available[queue] += 1;
        self.write(ring + 2, &self.available[queue].to_le_bytes());
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, at - BASE).expect("memory");
    }

    fn read(&self, at: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, at - BASE).expect("memory");
        bytes
    }
}
