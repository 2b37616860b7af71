//! A table of nftables that belongs to a socket: the kernel removes it when the socket is closed, however its process ends
//! (`NFT_TABLE_F_OWNER` of linux/netfilter/nf_tables.h).
//!
//! Messages are those of linux/netfilter/nfnetlink.h and nf_tables.h: a header of netlink in the machine's byte order, then
//! attributes whose numbers are big-endian. All of a table is made in one batch, or nothing of it.

use std::io;

use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};

const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const SUBSYSTEM: u16 = 10;
const NEW_TABLE: u16 = 0;
const NEW_CHAIN: u16 = 3;
const NEW_RULE: u16 = 6;
const ERROR: u16 = 2;

const REQUEST: u16 = 0x1;
const ACK: u16 = 0x4;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;
const APPEND: u16 = 0x800;
const NESTED: u16 = 0x8000;

/// NFPROTO_INET: IPv4 and IPv6.
const INET: u8 = 1;
const OWNER: u32 = 0x2;
const ACCEPT: u32 = 1;
/// The first register of 16 bytes.
const REGISTER: u32 = 1;

/// Where packets meet a chain.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hook {
    /// Packets on their way from one interface to another.
    Forward,
    /// Packets about to leave, whose source may be translated.
    SourceNat,
}

/// What a rule asks of a packet, or does with it: an expression of nftables.
#[derive(Clone, Debug)]
pub(super) struct Expression(Vec<u8>);

/// A table to be made.
pub(super) struct Batch {
    table: String,
    bytes: Vec<u8>,
    messages: u32,
}

/// A table in the kernel, for as long as this lives.
#[derive(Debug)]
pub(super) struct OwnedTable {
    _socket: Socket,
}

impl Batch {
    /// A table of that name.
    pub(super) fn new(table: &str) -> Batch {
        let mut batch = Batch { table: table.to_owned(), bytes: Vec::new(), messages: 0 };
        batch.message(BATCH_BEGIN, 0, (0, SUBSYSTEM), &[]);
        let attributes = [text(1, table), number(2, OWNER)].concat();
        batch.request(NEW_TABLE, EXCLUSIVE, &attributes);
        batch
    }

    /// A chain at a hook that accepts what no rule of it decides on.
    pub(super) fn chain(&mut self, name: &str, hook: Hook) {
        let (kind, point, priority) = match hook {
            Hook::Forward => ("filter", 2, 0),
            Hook::SourceNat => ("nat", 4, 100),
        };
        let attributes = [
            text(1, &self.table),
            text(3, name),
            nested(4, &[number(1, point), number(2, priority)].concat()),
            number(5, ACCEPT),
            text(7, kind),
        ];
        self.request(NEW_CHAIN, EXCLUSIVE, &attributes.concat());
    }

    /// A rule behind those that a chain has: its last expression is done with packets for which all before it hold.
    pub(super) fn rule(&mut self, chain: &str, expressions: &[Expression]) {
        let list: Vec<u8> = expressions.iter().flat_map(|expression| nested(1, &expression.0)).collect();
        let attributes = [text(1, &self.table), text(2, chain), nested(4, &list)].concat();
        self.request(NEW_RULE, APPEND, &attributes);
    }

    /// Makes it all in the network of the calling thread.
    pub(super) fn commit(mut self) -> io::Result<OwnedTable> {
        self.message(BATCH_END, 0, (0, SUBSYSTEM), &[]);
        let mut socket = Socket::new(NETLINK_NETFILTER)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        socket.send(&self.bytes, 0)?;
        // One answer to each request; those of a batch come together, or the one that refuses it.
        let mut answers = self.messages;
        while answers > 0 {
            let (answer, _) = socket.recv_from_full()?;
            for error in errors(&answer) {
                match error {
                    0 => answers = answers.saturating_sub(1),
                    error => return Err(io::Error::from_raw_os_error(-error)),
                }
            }
        }
        Ok(OwnedTable { _socket: socket })
    }

    fn request(&mut self, kind: u16, flags: u16, attributes: &[u8]) {
        self.messages += 1;
        self.message(SUBSYSTEM << 8 | kind, ACK | CREATE | flags, (INET, 0), attributes);
    }

    fn message(&mut self, kind: u16, flags: u16, (family, resource): (u8, u16), attributes: &[u8]) {
        const HEADERS: u32 = 16 + 4;
        self.bytes.extend((HEADERS + attributes.len() as u32).to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend((REQUEST | flags).to_ne_bytes());
        self.bytes.extend(self.messages.to_ne_bytes());
        self.bytes.extend([0; 4]);
        self.bytes.extend([family, 0]);
        self.bytes.extend(resource.to_be_bytes());
        self.bytes.extend(attributes);
    }
}

impl Expression {
    /// The packet is of IPv4, or of IPv6.
    pub(super) fn is_ipv4(ipv4: bool) -> [Expression; 2] {
        const PROTOCOL: u32 = 15;
        [meta(PROTOCOL), compare(true, &[if ipv4 { 2 } else { 10 }])]
    }

    /// Its source begins with the same bits as an address; `mask` has these bits.
    pub(super) fn source_in(address: &[u8], mask: &[u8]) -> [Expression; 3] {
        let (offset, length) = (if address.len() == 4 { 12 } else { 8 }, address.len() as u32);
        const NETWORK_HEADER: u32 = 1;
        let load = [number(1, REGISTER), number(2, NETWORK_HEADER), number(3, offset), number(4, length)];
        let masked = [
            number(1, REGISTER),
            number(2, REGISTER),
            number(3, length),
            nested(4, &bytes(1, mask)),
            nested(5, &bytes(1, &vec![0; mask.len()])),
        ];
        [
            expression("payload", &load.concat()),
            expression("bitwise", &masked.concat()),
            compare(true, address),
        ]
    }

    /// The name of the interface from which it came is this.
    pub(super) fn came_from(interface: &str) -> [Expression; 2] {
        const NAME: u32 = 6;
        let mut name = [0; 16];
        name[..interface.len()].copy_from_slice(interface.as_bytes());
        [meta(NAME), compare(true, &name)]
    }

    /// The name of the interface by which it leaves does not begin so.
    pub(super) fn leaves_not_by(prefix: &str) -> [Expression; 2] {
        const NAME: u32 = 7;
        [meta(NAME), compare(false, prefix.as_bytes())]
    }

    /// Its source becomes the address of the interface by which it leaves.
    pub(super) fn masquerade() -> Expression {
        expression("masq", &[])
    }

    /// It is dropped.
    pub(super) fn drop() -> Expression {
        const VERDICT: u32 = 0;
        const DROP: u32 = 0;
        let verdict = nested(2, &nested(2, &number(1, DROP)));
        expression("immediate", &[number(1, VERDICT), verdict].concat())
    }
}

fn expression(name: &str, data: &[u8]) -> Expression {
    Expression([text(1, name), nested(2, data)].concat())
}

fn meta(key: u32) -> Expression {
    expression("meta", &[number(1, REGISTER), number(2, key)].concat())
}

fn compare(equal: bool, with: &[u8]) -> Expression {
    let data = [number(1, REGISTER), number(2, u32::from(!equal)), nested(3, &bytes(1, with))];
    expression("cmp", &data.concat())
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    bytes(kind, &value.to_be_bytes())
}

fn text(kind: u16, value: &str) -> Vec<u8> {
    bytes(kind, &[value.as_bytes(), &[0]].concat())
}

fn nested(kind: u16, attributes: &[u8]) -> Vec<u8> {
    bytes(kind | NESTED, attributes)
}

/// An attribute: its length, its kind, its value, padded to four bytes.
fn bytes(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut attribute = Vec::with_capacity(4 + value.len() + 3);
    attribute.extend((4 + value.len() as u16).to_ne_bytes());
    attribute.extend(kind.to_ne_bytes());
    attribute.extend(value);
    attribute.resize(attribute.len().next_multiple_of(4), 0);
    attribute
}

/// The codes of the answers in a message from the kernel, 0 for what was done.
fn errors(mut answer: &[u8]) -> Vec<i32> {
    let mut errors = Vec::new();
    while let Some((header, rest)) = answer.split_at_checked(16) {
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        if let (ERROR, Some(&[a, b, c, d])) = (kind, rest.first_chunk::<4>()) {
            errors.push(i32::from_ne_bytes([a, b, c, d]));
        }
        answer = answer.get(length.next_multiple_of(4).max(16)..).unwrap_or_default();
    }
    errors
}
