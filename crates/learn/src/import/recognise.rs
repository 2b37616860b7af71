//! Formats, by their first bytes.

/// A format that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A capture of packets: pcap or pcapng.
    Capture,
    /// A trace of a stored run: Parquet.
    StoredTrace,
    /// An iBoxNet profile: JSON.
    IBoxNet,
    /// A packet-delivery trace of mahimahi.
    DeliveryTrace,
    /// A log of mahimahi's `mm-link` or of Pantheon's tunnel.
    DeliveryLog,
}

/// Bytes of a file's start that [`recognise`] needs.
pub(crate) const HEAD: usize = 4096;

/// The format of a file that begins with these bytes, of which the first 4096 count. `None` if it is in another format.
pub fn recognise(head: &[u8]) -> Option<Format> {
    const CAPTURES: [[u8; 4]; 7] = [
        [0x0a, 0x0d, 0x0d, 0x0a],
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0xa1, 0xb2, 0x3c, 0x4d],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0xa1, 0xb2, 0xcd, 0x34],
        [0x34, 0xcd, 0xb2, 0xa1],
    ];
    let head = &head[..head.len().min(HEAD)];
    if CAPTURES.iter().any(|magic| head.starts_with(magic)) {
        return Some(Format::Capture);
    }
    if head.starts_with(b"PAR1") {
        return Some(Format::StoredTrace);
    }
    let text = match core::str::from_utf8(head) {
        Ok(text) => text,
        // The last character may be cut off.
        Err(error) if error.error_len().is_none() => {
            core::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return None,
    };
    if text.trim_start().starts_with('{') {
        return Some(Format::IBoxNet);
    }
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let comments = lines().take_while(|line| line.starts_with('#'));
    if comments.into_iter().any(|line| line.contains("base timestamp:") || line.contains("init timestamp:")) {
        return Some(Format::DeliveryLog);
    }
    let first = lines().find(|line| !line.starts_with('#'))?;
    let number = first.split('#').next().unwrap_or_default().trim();
    number.parse::<u64>().is_ok().then_some(Format::DeliveryTrace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognised_by_their_content() {
        assert_eq!(recognise(&[0x4d, 0x3c, 0xb2, 0xa1, 2, 0]), Some(Format::Capture));
        assert_eq!(recognise(b"PAR1\x15"), Some(Format::StoredTrace));
        assert_eq!(recognise(b"\n {\"config\": {}}"), Some(Format::IBoxNet));
        assert_eq!(recognise(b"# a trace\n1\n5\n"), Some(Format::DeliveryTrace));
        let log = b"# mahimahi mm-link (downlink) [a.down] > log\n# queue: infinite\n# base timestamp: 5\n5 # 1504\n";
        assert_eq!(recognise(log), Some(Format::DeliveryLog));
        assert_eq!(recognise(b"# init timestamp: 5\n0.000 + 1500\n"), Some(Format::DeliveryLog));
        for other in [&b""[..], b"# nothing\n", b"rate = 5\n", b"\xff\xfe", b"RIFF....WAVE"] {
            assert_eq!(recognise(other), None, "{other:?}");
        }
    }
}
