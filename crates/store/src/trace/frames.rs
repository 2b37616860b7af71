//! An append-only file of frames with checksums, of which any prefix is readable: what a killed process leaves.
//!
//! A frame is its number (u64), the length of its content (u32), a CRC-32 over number, length and content, and the
//! content; little-endian. The journal's frames hold rows and are numbered by their first row; the frames of the row
//! groups' metadata are numbered by the file's length after the group.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

const HEADER: usize = 16;

/// No frame is longer; a larger length is damage.
const LONGEST: usize = 64 << 20;

/// Appends frames.
pub(crate) struct FrameWriter {
    file: File,
    buffer: Vec<u8>,
}

impl FrameWriter {
    pub(crate) fn create(path: &Path) -> io::Result<FrameWriter> {
        Ok(FrameWriter { file: File::create(path)?, buffer: Vec::new() })
    }

    /// Appends one frame; when this returns, killing the process no longer loses it.
    pub(crate) fn append(&mut self, number: u64, content: &[u8]) -> io::Result<()> {
        let length = u32::try_from(content.len()).map_err(io::Error::other)?;
        self.buffer.clear();
        self.buffer.extend_from_slice(&number.to_le_bytes());
        self.buffer.extend_from_slice(&length.to_le_bytes());
        self.buffer.extend_from_slice(&checksum(&self.buffer, content).to_le_bytes());
        self.buffer.extend_from_slice(content);
        self.file.write_all(&self.buffer)
    }

    /// Forgets all frames.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0)).map(|_| ())
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
