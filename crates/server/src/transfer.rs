//! Bodies that are too long to be held at once: between the threads that write or read them, and the network.

use std::io::{self, Read, Write};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::api::ApiError;

/// So many pieces wait for the network, or for the reader.
const WAITING: usize = 8;
/// So long the next piece of a body may take to come, or to be taken.
const PATIENCE: Duration = Duration::from_secs(30);
/// Of so many bytes.
const PIECE: usize = 64 << 10;

type Piece = Result<Bytes, io::Error>;

/// A body that `write` writes on a thread of its own, as fast as the client takes it. If that fails the connection ends
/// before the body does, so that nobody takes a part for the whole.
pub(crate) fn written<E: ToString>(
    write: impl FnOnce(&mut BodyWriter) -> Result<(), E> + Send + 'static,
) -> Body {
    let (sender, receiver) = channel::<Piece>(WAITING);
    tokio::task::spawn_blocking(move || {
        let runtime = Handle::current();
        let mut writer = BodyWriter { sender, runtime, piece: Vec::with_capacity(PIECE) };
        let failed = match write(&mut writer) {
            Ok(()) => writer.flush().err(),
            Err(error) => Some(io::Error::other(error.to_string())),
        };
        if let Some(error) = failed {
            // Nobody may wait for it any more.
            let _ = writer.send(Err(error));
        }
    });
    Body::from_stream(pieces(receiver))
}

/// Reads a body where reading may block.
pub(crate) fn reader(body: Body) -> BodyReader {
    let (sender, receiver) = channel::<Piece>(WAITING);
    tokio::spawn(async move {
        let mut pieces = body.into_data_stream();
        loop {
            let piece = match tokio::time::timeout(PATIENCE, pieces.next()).await {
                Ok(None) => return,
                Ok(Some(piece)) => piece.map_err(io::Error::other),
                Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the transfer stalled")),
            };
            let is_over = piece.is_err();
            if sender.send(piece).await.is_err() || is_over {
                return;
            }
        }
    });
    BodyReader { receiver, piece: Bytes::new() }
}

/// A file's content, as it is read.
pub(crate) async fn file(path: std::path::PathBuf) -> Result<(u64, Body), ApiError> {
    let opened = tokio::task::spawn_blocking(move || {
        let file = std::fs::File::open(&path)?;
        let length = file.metadata()?.len();
        Ok::<_, io::Error>((file, length))
    });
    let (mut file, length) = opened
        .await
        .map_err(|_| ApiError::environment("the file cannot be read"))?
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                ApiError::not_found("the file is not on this server: it is on the host that measured the run")
            }
            _ => ApiError::environment(format_args!("the file cannot be read: {error}")),
        })?;
    Ok((length, written(move |writer| io::copy(&mut file, writer).map(|_| ()))))
}

fn pieces(receiver: Receiver<Piece>) -> impl stream::Stream<Item = Piece> {
    stream::unfold(receiver, async |mut receiver| receiver.recv().await.map(|piece| (piece, receiver)))
}

/// Writes into a body. Errors mean that nobody reads it any more.
pub(crate) struct BodyWriter {
    sender: Sender<Piece>,
    runtime: Handle,
    piece: Vec<u8>,
}

impl BodyWriter {
    fn send(&self, piece: Piece) -> io::Result<()> {
        let gone = |why| io::Error::new(io::ErrorKind::BrokenPipe, why);
        match self.runtime.block_on(async { tokio::time::timeout(PATIENCE, self.sender.send(piece)).await }) {
            Ok(sent) => sent.map_err(|_| gone("the client disconnected")),
            // Its thread is needed by others.
            Err(_) => Err(gone("the client does not read it")),
        }
    }
}

impl Write for BodyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        self.send(Ok(piece.into()))
    }
}

/// Reads from a body.
pub(crate) struct BodyReader {
    receiver: Receiver<Piece>,
    piece: Bytes,
}

impl Read for BodyReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.receiver.blocking_recv() {
                Some(piece) => self.piece = piece?,
                None => return Ok(0),
            }
        }
        let length = into.len().min(self.piece.len());
        into[..length].copy_from_slice(&self.piece.split_to(length));
        Ok(length)
    }
}
