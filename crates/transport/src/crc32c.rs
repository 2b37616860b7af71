//! CRC-32c, the checksum of SCTP (RFC 9260 appendix A) and of DCCP's Data Checksum option (RFC 4340 section 9.3).

use crc::{CRC_32_ISCSI, Crc, Table};

/// The algorithm, sixteen bytes at a time.
pub(crate) static CRC32C: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_32c_has_its_published_values() {
        // RFC 3720 appendix B.4.
        assert_eq!(CRC32C.checksum(&[]), 0);
        assert_eq!(CRC32C.checksum(&[0; 32]), 0x8A91_36AA);
        assert_eq!(CRC32C.checksum(&[0xFF; 32]), 0x62A8_AB43);
    }
}
