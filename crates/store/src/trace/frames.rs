//! An append-only file of frames with checksums, of which any prefix is readable: what a killed process leaves.
//!
//! A frame is its number (u64), the length of its content (u32), a CRC-32 over number, length and content, and the
//! content; little-endian. The journal's frames hold rows and are numbered by their first row; the frames of the row
//! groups' metadata are numbered by the file's length after the group.

use std::fs::File;
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

const HEADER: usize = 16;

/// No frame is longer; a larger length is damage.
const LONGEST: usize = 64 << 20;

/// Appends frames.
pub(crate) struct FrameWriter {
    file: File,
    /// Bytes of whole frames.
    length: u64,
}

impl FrameWriter {
    pub(crate) fn create(path: &Path) -> io::Result<FrameWriter> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(FrameWriter { file, length: 0 })
    }

    /// Appends one frame; when this returns, killing the process no longer loses it.
    pub(crate) fn append(&mut self, number: u64, content: &[u8]) -> io::Result<()> {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&number.to_le_bytes());
        header[8..12].copy_from_slice(&u32::try_from(content.len()).map_err(io::Error::other)?.to_le_bytes());
        let sum = checksum(&header[..12], content);
        header[12..].copy_from_slice(&sum.to_le_bytes());
        let written = self.file.write_vectored(&[IoSlice::new(&header), IoSlice::new(content)]);
        let written = match written {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            written => written?,
        };
        self.file.write_all(header.get(written..).unwrap_or_default())?;
        self.file.write_all(content.get(written.saturating_sub(HEADER)..).unwrap_or_default())?;
        self.length += (HEADER + content.len()) as u64;
        Ok(())
    }

    /// Adds the contents of all frames since the last [`FrameWriter::clear`] to `into`.
    pub(crate) fn contents(&self, into: &mut Vec<u8>) -> io::Result<()> {
        let mut at = 0;
        while at < self.length {
            let mut header = [0; HEADER];
            self.file.read_exact_at(&mut header, at)?;
            let content = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
            let start = into.len();
            into.resize(start + content, 0);
            self.file.read_exact_at(&mut into[start..], at + HEADER as u64)?;
            at += (HEADER + content) as u64;
        }
        Ok(())
    }

    /// Forgets all frames. The next ones take their place in the file; until then, and behind them, the old ones can
    /// still be read, and are known by their numbers. To write over pages in memory is cheaper than to free them.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.length = 0;
        self.file.seek(SeekFrom::Start(0)).map(drop)
    }
}

/// Hands `take` every whole frame, in order, up to the first that is not whole.
pub(crate) fn read_frames<E: From<io::Error>>(
    path: &Path,
    mut take: impl FnMut(u64, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut file = match File::open(path) {
        Ok(file) => io::BufReader::new(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut content = Vec::new();
    loop {
        let mut header = [0; HEADER];
        if !whole(&mut file, &mut header)? {
            return Ok(());
        }
        let (head, sum) = header.split_at(12);
        let number =
            u64::from_le_bytes([head[0], head[1], head[2], head[3], head[4], head[5], head[6], head[7]]);
        let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
        if length > LONGEST {
            return Ok(());
        }
        content.resize(length, 0);
        if !whole(&mut file, &mut content)? || checksum(head, &content).to_le_bytes() != sum {
            return Ok(());
        }
        take(number, &content)?;
    }
}

fn checksum(head: &[u8], content: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(head);
    crc.update(content);
    crc.finalize()
}

/// Fills `into`; false at the end of the file.
fn whole(file: &mut impl Read, into: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(into) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
