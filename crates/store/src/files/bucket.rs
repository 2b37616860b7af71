//! A bucket of an S3-compatible server.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::buffered::{BufReader, BufWriter};
use object_store::path::Path as Key;
use object_store::{BackoffConfig, ClientOptions, Error, ObjectStore, ObjectStoreExt as _, RetryConfig};
use ring::digest::{Context, SHA256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;

use super::{FilesAddress, SharedFile};
use crate::StoreError;

/// What is sent or fetched at a time; larger files go in parts of so much.
const PART: usize = 8 << 20;
/// How long a server may say nothing.
const SILENCE: Duration = Duration::from_secs(30);

/// A bucket, with what is needed to reach it. Every call waits for its end.
pub(crate) struct Bucket {
    address: FilesAddress,
    store: Arc<AmazonS3>,
    runtime: Runtime,
}

/// Why something was not done with a file.
pub(crate) enum Failed {
    /// The file on this host.
    Here(io::Error),
    /// The server, or the way there.
    There(Error),
    /// It was told to stop.
    Stopped,
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Here(error)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::There(error)
    }
}

impl Bucket {
    /// The bucket at this address, as the environment says how to reach it: `AWS_ENDPOINT_URL`, `AWS_REGION`,
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and what else S3's tools know. Nobody is asked yet.
    pub(crate) fn open(address: FilesAddress) -> Result<Bucket, StoreError> {
        // The rest of this program uses the same; who was first has chosen the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let failed = |why: String| unusable(&address, "reached", why);
        let backoff = BackoffConfig { max_backoff: Duration::from_secs(2), ..BackoffConfig::default() };
        let retry = RetryConfig { backoff, max_retries: 4, retry_timeout: Duration::from_secs(10) };
        let client = ClientOptions::new().with_connect_timeout(Duration::from_secs(5)).with_timeout(SILENCE);
        // Within a network of one's own, as tests are, without encryption: if the address says so.
        let is_plain = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]
            .iter()
            .any(|name| std::env::var(name).is_ok_and(|endpoint| endpoint.starts_with("http://")));
        let store = AmazonS3Builder::from_env()
            .with_client_options(client.with_allow_http(is_plain))
            .with_retry(retry)
            .with_bucket_name(&address.bucket)
            .build()
            .map_err(|error| failed(cause(&error)))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed(error.to_string()))?;
        Ok(Bucket { store: Arc::new(store), runtime, address })
    }

    /// As in the store's address.
    pub(crate) fn shown(&self) -> String {
        self.address.shown()
    }

    /// Puts a file of this host there under a name, as a whole or not at all; looks at `go_on` now and then.
    pub(crate) fn put(
        &self,
        name: &str,
        file: &Path,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(u64, String), Failed> {
        self.runtime.block_on(async {
            let mut file = File::open(file)?;
            let store: Arc<dyn ObjectStore> = Arc::clone(&self.store) as _;
            let mut writer = BufWriter::with_capacity(store, self.key(name), PART);
            let mut digest = Context::new(&SHA256);
            let (mut bytes, mut part) = (0, vec![0; PART / 8]);
            loop {
                let read = file.read(&mut part)?;
                let Some(read) = part.get(..read).filter(|read| !read.is_empty()) else { break };
                digest.update(read);
                bytes += read.len() as u64;
                let written = match go_on() {
                    true => writer.write_all(read).await.map_err(|error| Failed::There(unwrapped(error))),
                    false => Err(Failed::Stopped),
                };
                if let Err(failed) = written {
                    // What was sent in parts is nothing without the rest.
                    let _ = writer.abort().await;
                    return Err(failed);
                }
            }
            match writer.shutdown().await {
                Ok(()) => Ok((bytes, hexadecimal(digest))),
                Err(error) => Err(Failed::There(unwrapped(error))),
            }
        })
    }

    /// Puts a text there under a name.
    pub(crate) fn put_text(&self, name: &str, text: &str) -> Result<(), Failed> {
        let key = self.key(name);
        self.runtime.block_on(self.store.put(&key, text.as_bytes().to_vec().into()))?;
        Ok(())
    }

    /// Gets what is there under a name into `to`; true if it is what `file` says.
    pub(crate) fn get(&self, name: &str, to: &mut File, file: &SharedFile) -> Result<bool, Failed> {
        self.runtime.block_on(async {
            let meta = self.store.head(&self.key(name)).await?;
            if meta.size != file.bytes {
                return Ok(false);
            }
            let store: Arc<dyn ObjectStore> = Arc::clone(&self.store) as _;
            let mut reader = BufReader::with_capacity(store, &meta, PART);
            let mut digest = Context::new(&SHA256);
            let mut part = vec![0; PART / 8];
            loop {
                let read = reader.read(&mut part).await.map_err(|error| Failed::There(unwrapped(error)))?;
                let Some(read) = part.get(..read).filter(|read| !read.is_empty()) else { break };
                digest.update(read);
                to.write_all(read)?;
            }
            to.sync_all()?;
            Ok(hexadecimal(digest) == file.sha256)
        })
    }

    /// Removes what is there under a name, if anything is.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Failed> {
        match self.runtime.block_on(self.store.delete(&self.key(name))) {
            Err(Error::NotFound { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(Failed::There(error)),
        }
    }

    /// What went wrong when the file at `path` was to be `what`.
    pub(crate) fn failed(&self, what: &'static str, path: &Path, failed: Failed) -> StoreError {
        match failed {
            Failed::Here(error) => StoreError::io(what, path)(error),
            Failed::There(error) => unusable(&self.address, what, self.explained(&error)),
            Failed::Stopped => unusable(&self.address, what, "it was stopped".to_owned()),
        }
    }

    /// What an error means to who has to mend it.
    fn explained(&self, error: &Error) -> String {
        let text = cause(error);
        let said = |word: &str| text.contains(word);
        if said("NoSuchBucket") {
            return format!("there is no bucket `{}` there", self.address.bucket);
        }
        match error {
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                "the server refuses this access key: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what the key \
                 may do in the bucket"
                    .to_owned()
            }
            Error::NotFound { .. } => "it is missing: it was removed from the bucket".to_owned(),
            _ if said("169.254.169.254") || said("InstanceMetadata") => {
                "there is no access key: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".to_owned()
            }
            // Servers answer with pages of XML.
            _ => {
                let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect();
                format!("{line}; check AWS_ENDPOINT_URL and that the server runs")
            }
        }
    }

    fn key(&self, name: &str) -> Key {
        let parts = self.address.prefix.split('/').chain(name.split('/'));
        Key::from_iter(parts.filter(|part| !part.is_empty()))
    }
}

impl Debug for Bucket {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Bucket").field("address", &self.address.shown()).finish_non_exhaustive()
    }
}

/// The error that an input-output error was made of.
fn unwrapped(error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => Error::Generic { store: "S3", source: error.into() },
    }
}

/// The innermost cause.
fn cause(error: &Error) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(inner) = next {
        text = inner.to_string();
        next = inner.source();
    }
    text
}

fn unusable(address: &FilesAddress, what: &'static str, why: String) -> StoreError {
    StoreError::Files { place: address.shown(), what, why }
}

fn hexadecimal(digest: Context) -> String {
    digest.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
