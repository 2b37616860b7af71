//! The headers of UDP (RFC 768) and UDP-Lite (RFC 3828). They differ in one field: where UDP repeats the length, UDP-Lite
//! says how much the checksum covers.

use core::net::IpAddr;

use trunkline_core::Address;

use crate::addressing::ipv4_of;
use crate::checksum;

/// Length of the UDP header in bytes, and of UDP-Lite's.
pub const UDP_HEADER_LENGTH: usize = 8;

/// Which header stands in front of a datagram's payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// UDP's.
    #[default]
    Udp,
    /// UDP-Lite's.
    Lite {
        /// How much of a payload the checksum covers in what is sent, and must cover in what is received; in what is sent
        /// all of it if absent, and in what is received anything.
        coverage: Option<u16>,
    },
}

/// Why a datagram is dropped, as a kernel would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its length is not what it says, or it says impossible things.
    Malformed,
    /// What the checksum covers is damaged.
    Checksum,
    /// The checksum covers less than is asked for.
    Coverage,
    /// For another port, or from another than it says.
    Stray,
}

impl Variant {
    /// The IP protocol number.
    pub const fn protocol(self) -> u8 {
        match self {
            Variant::Udp => 17,
            Variant::Lite { .. } => 136,
        }
    }

    /// Fills in the header of a datagram of at most 65,535 bytes, for which its first eight bytes are free.
    ///
    /// # Panics
    /// If it is shorter than that.
    pub fn write(self, from: Address, to: Address, datagram: &mut [u8]) {
        let length = datagram.len();
        let third = match self {
            Variant::Lite { coverage: Some(payload) }
                if UDP_HEADER_LENGTH + usize::from(payload) < length =>
            {
                UDP_HEADER_LENGTH + usize::from(payload)
            }
            Variant::Lite { .. } => 0,
            Variant::Udp => length,
        };
        let fields = [from.port, to.port, third as u16, 0];
        let header = fields.iter().fold(0, |header, &field| header << 16 | u64::from(field));
        datagram[..UDP_HEADER_LENGTH].copy_from_slice(&header.to_be_bytes());
        let covered = if third == 0 { length } else { third };
        // A checksum that comes out as zero is sent as all ones: zero stands for none.
        let checksum = match !self.sum(from, to, length, &datagram[..covered]) {
            0 => u16::MAX,
            checksum => checksum,
        };
        datagram[6..UDP_HEADER_LENGTH].copy_from_slice(&checksum.to_be_bytes());
    }

    /// Checks a datagram's header and gives its payload.
    ///
    /// # Errors
    /// The first fault, in the order in which kernels look.
    pub fn read(self, from: Address, to: Address, datagram: &[u8]) -> Result<&[u8], Fault> {
        let (header, payload) = datagram.split_first_chunk::<UDP_HEADER_LENGTH>().ok_or(Fault::Malformed)?;
        let header = u64::from_be_bytes(*header);
        let [source, destination, third, checksum] = [48, 32, 16, 0].map(|shift| (header >> shift) as u16);
        let length = datagram.len();
        let covered = match (self, usize::from(third)) {
            (Variant::Lite { .. }, 0) => length,
            (Variant::Lite { .. }, covered) if (UDP_HEADER_LENGTH..=length).contains(&covered) => covered,
            (Variant::Udp, claimed) if claimed == length => length,
            _ => return Err(Fault::Malformed),
        };
        // Zero means "none was computed". Our peers always compute it, so here zero is damage.
        if checksum == 0 || self.sum(from, to, length, &datagram[..covered]) != u16::MAX {
            return Err(Fault::Checksum);
        }
        if source != from.port || destination != to.port {
            return Err(Fault::Stray);
        }
        match self {
            Variant::Lite { coverage: Some(least) }
                if covered < length.min(UDP_HEADER_LENGTH + usize::from(least)) =>
            {
                Err(Fault::Coverage)
            }
            _ => Ok(payload),
        }
    }

    /// Of the pseudo-header and what is covered; all ones if that holds its right checksum.
    fn sum(self, from: Address, to: Address, length: usize, covered: &[u8]) -> u16 {
        let addresses = [from, to].map(|address| IpAddr::from(ipv4_of(address.host)));
        checksum::sum(checksum::pseudo_header(self.protocol(), addresses, length), covered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Address = Address { host: 1, port: 2 };
    const TO: Address = Address { host: 3, port: 4 };

    fn datagram(variant: Variant, payload: usize) -> Vec<u8> {
        let mut datagram: Vec<u8> = (0..UDP_HEADER_LENGTH + payload).map(|n| n as u8).collect();
        variant.write(FROM, TO, &mut datagram);
        datagram
    }

    #[test]
    fn what_was_written_is_read_and_any_flipped_bit_of_what_is_covered_is_found() {
        for (variant, covered) in [
            (Variant::Udp, usize::MAX),
            (Variant::Lite { coverage: None }, usize::MAX),
            (Variant::Lite { coverage: Some(0) }, 8),
            (Variant::Lite { coverage: Some(5) }, 13),
        ] {
            for length in [0, 1, 4, 5, 6, 7, 300] {
                let mut datagram = datagram(variant, length);
                let payload = datagram[8..].to_vec();
                assert_eq!(variant.read(FROM, TO, &datagram), Ok(payload.as_slice()));
                assert_eq!(variant.read(TO, TO, &datagram), Err(Fault::Checksum));
                for bit in 0..datagram.len() * 8 {
                    datagram[bit / 8] ^= 1 << (bit % 8);
                    let read = variant.read(FROM, TO, &datagram);
                    assert_eq!(read.is_ok(), bit / 8 >= covered, "bit {bit} of {length} bytes, {variant:?}");
                    datagram[bit / 8] ^= 1 << (bit % 8);
                }
            }
        }
    }

    #[test]
    fn udp_lite_says_what_is_covered_where_udp_says_the_length() {
        let third = |variant, payload| datagram(variant, payload)[4..6].to_vec();
        assert_eq!(third(Variant::Udp, 20), [0, 28]);
        assert_eq!(third(Variant::Lite { coverage: None }, 20), [0, 0]);
        assert_eq!(third(Variant::Lite { coverage: Some(12) }, 20), [0, 20]);
        // All of a shorter one.
        assert_eq!(third(Variant::Lite { coverage: Some(12) }, 12), [0, 0]);
    }

    #[test]
    fn coverages_that_cannot_be_are_malformed_and_small_ones_unwanted() {
        let lite = |coverage| Variant::Lite { coverage };
        let good = datagram(lite(Some(10)), 20);
        for coverage in [1, 7, 29, u16::MAX] {
            let mut bad = good.clone();
            bad[4..6].copy_from_slice(&coverage.to_be_bytes());
            assert_eq!(lite(None).read(FROM, TO, &bad), Err(Fault::Malformed), "{coverage}");
        }
        assert!(lite(None).read(FROM, TO, &good).is_ok());
        assert!(lite(Some(10)).read(FROM, TO, &good).is_ok());
        assert_eq!(lite(Some(11)).read(FROM, TO, &good), Err(Fault::Coverage));
        assert!(lite(Some(11)).read(FROM, TO, &datagram(lite(None), 20)).is_ok());
        assert_eq!(Variant::Udp.read(FROM, TO, &[0; 7]), Err(Fault::Malformed));
    }
}
