//! Tokens: what browsers and programs show to be let in. Each has a file named after its SHA-256; the token itself is kept
//! nowhere. It is 256 random bits, so that nobody finds it by trying, nor from its hash.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use jiff::{SignedDuration, Timestamp};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::error::ServeError;

/// Validity of a login link.
pub const LINK_LASTS: SignedDuration = SignedDuration::from_mins(10);
/// Time for which a browser stays logged in.
pub const BROWSER_LASTS: SignedDuration = SignedDuration::from_hours(30 * 24);

/// A folder of tokens. May be used by several processes at once.
#[derive(Clone, Debug)]
pub struct Tokens {
    folder: PathBuf,
}

/// The holder of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TokenKind {
    /// The code of a link: a browser gives it for a cookie, once.
    Link,
    /// A program's.
    Program,
    /// A browser's cookie.
    Browser,
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Token {
    /// Its name.
    pub name: String,
    /// Its holder.
    pub kind: TokenKind,
    /// The time of its creation, in UTC.
    pub made: Timestamp,
    /// End of its validity, in UTC; null if it is valid until it is revoked.
    #[schema(required = true)]
    pub expires: Option<Timestamp>,
}

impl Tokens {
    /// The tokens in this folder, which is made if there is none; only its owner can read it.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn open(folder: &Path) -> Result<Tokens, ServeError> {
        make_private(folder)?;
        Ok(Tokens { folder: folder.to_path_buf() })
    }

    /// Makes the code of a link for a browser.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn make_link(&self, now: Timestamp) -> Result<String, ServeError> {
        self.forget_expired(now)?;
        self.make(TokenKind::Link, "link".to_owned(), now, Some(LINK_LASTS))
    }

    /// Makes a token for a program.
    ///
    /// # Errors
    /// If the name is taken, or none; if it cannot be written.
    pub fn make_program(&self, name: &str, now: Timestamp) -> Result<String, ServeError> {
        let wrong = |why| ServeError::TokenName { name: name.escape_debug().to_string(), why };
        if name.trim().is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
            return Err(wrong("use one or two words"));
        }
        if self.list(now)?.iter().any(|token| token.name == name) {
            return Err(wrong("it already exists; revoke it, or choose another name"));
        }
        self.make(TokenKind::Program, name.to_owned(), now, None)
    }

    /// Takes the code of a link and gives a browser's token for it; `None` if it is none, too old, or was used before.
    ///
    /// # Errors
    /// If files cannot be read or written.
    pub fn redeem(&self, code: &str, now: Timestamp) -> Result<Option<String>, ServeError> {
        if self.find(code, now)?.is_none_or(|token| token.kind != TokenKind::Link) {
            return Ok(None);
        }
        // Of several who come at once one removes it.
        let path = self.path(code);
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ServeError::file("removed", &path)(error)),
        }
        let number = 1 + self.list(now)?.iter().filter_map(browser_number).max().unwrap_or(0);
        self.make(TokenKind::Browser, format!("browser-{number}"), now, Some(BROWSER_LASTS)).map(Some)
    }

    /// What is known of the token that somebody shows, unless it has expired.
    ///
    /// # Errors
    /// If its file cannot be read.
    pub fn find(&self, token: &str, now: Timestamp) -> Result<Option<Token>, ServeError> {
        let path = self.path(token);
        match fs::read(&path) {
            Ok(bytes) => Ok(serde_json::from_slice::<Token>(&bytes).ok().filter(|token| token.is_valid(now))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ServeError::file("read", &path)(error)),
        }
    }

    /// Every token that is valid, the oldest first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn list(&self, now: Timestamp) -> Result<Vec<Token>, ServeError> {
        let mut tokens: Vec<Token> = self.all()?.into_iter().map(|(_, token)| token).collect();
        tokens.retain(|token| token.is_valid(now));
        tokens.sort_by(|a, b| (a.made, &a.name).cmp(&(b.made, &b.name)));
        Ok(tokens)
    }

    /// Makes the token of this name useless.
    ///
    /// # Errors
    /// If there is none.
    pub fn revoke(&self, name: &str) -> Result<(), ServeError> {
        let named: Vec<_> = self.all()?.into_iter().filter(|(_, token)| token.name == name).collect();
        if named.is_empty() {
            return Err(ServeError::NoToken(name.escape_debug().to_string()));
        }
        named
            .iter()
            .try_for_each(|(path, _)| fs::remove_file(path).map_err(ServeError::file("removed", path)))
    }

    /// Makes the very token useless that somebody shows.
    ///
    /// # Errors
    /// If its file cannot be removed.
    pub fn drop_token(&self, token: &str) -> Result<(), ServeError> {
        let path = self.path(token);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(ServeError::file("removed", &path)(error))
            }
            _ => Ok(()),
        }
    }

    fn make(
        &self,
        kind: TokenKind,
        name: String,
        now: Timestamp,
        lasts: Option<SignedDuration>,
    ) -> Result<String, ServeError> {
        let mut random = [0; 32];
        SystemRandom::new()
            .fill(&mut random)
            .map_err(|_| ServeError::System("the system provides no random numbers".to_owned()))?;
        let secret = BASE64URL_NOPAD.encode(&random);
        let token = Token { name, kind, made: now, expires: lasts.map(|lasts| now + lasts) };
        let path = self.path(&secret);
        let bytes = serde_json::to_vec(&token).map_err(|e| ServeError::System(e.to_string()))?;
        write_private(&path, &bytes)?;
        Ok(secret)
    }

    fn forget_expired(&self, now: Timestamp) -> Result<(), ServeError> {
        for (path, _) in self.all()?.into_iter().filter(|(_, token)| !token.is_valid(now)) {
            // Somebody else may have been first.
            let _ = fs::remove_file(path);
        }
        Ok(())
    }

    fn all(&self) -> Result<Vec<(PathBuf, Token)>, ServeError> {
        let failed = || ServeError::file("read", &self.folder);
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed())? {
            let path = entry.map_err(failed())?.path();
            if let Some(token) = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
                all.push((path, token));
            }
        }
        Ok(all)
    }

    fn path(&self, token: &str) -> PathBuf {
        self.folder.join(HEXLOWER.encode(digest(&SHA256, token.as_bytes()).as_ref()))
    }
}

impl Token {
    fn is_valid(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}

fn browser_number(token: &Token) -> Option<u32> {
    token.name.strip_prefix("browser-")?.parse().ok()
}

/// Makes a folder that only its owner can read.
pub(crate) fn make_private(folder: &Path) -> Result<(), ServeError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(ServeError::file("created", folder))
}

/// Writes a new file that only its owner can read.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), ServeError> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| file.write_all(bytes));
    written.map_err(ServeError::file("written", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens() -> (tempfile::TempDir, Tokens, Timestamp) {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(&folder.path().join("tokens")).unwrap();
        (folder, tokens, Timestamp::from_second(1_800_000_000).unwrap())
    }

    #[test]
    fn a_link_works_once_and_not_after_ten_minutes() {
        let (_folder, tokens, now) = tokens();
        let code = tokens.make_link(now).unwrap();
        assert!(tokens.redeem("else", now).unwrap().is_none());
        let cookie = tokens.redeem(&code, now).unwrap().unwrap();
        assert_ne!(cookie, code);
        assert!(tokens.redeem(&code, now).unwrap().is_none());
        assert_eq!(tokens.find(&cookie, now).unwrap().unwrap().kind, TokenKind::Browser);
        assert!(tokens.redeem(&cookie, now).unwrap().is_none(), "a cookie is no link");
        let late = tokens.make_link(now).unwrap();
        assert!(tokens.redeem(&late, now + LINK_LASTS).unwrap().is_none());
        assert!(tokens.find(&cookie, now + BROWSER_LASTS).unwrap().is_none());
    }

    #[test]
    fn a_programs_token_works_until_it_is_revoked() {
        let (_folder, tokens, now) = tokens();
        let token = tokens.make_program("nightly", now).unwrap();
        assert_eq!(tokens.find(&token, now).unwrap().unwrap().name, "nightly");
        assert!(tokens.make_program("nightly", now).is_err());
        assert!(tokens.make_program(" ", now).is_err());
        assert_eq!(tokens.list(now).unwrap().len(), 1);
        tokens.revoke("nightly").unwrap();
        assert!(tokens.find(&token, now).unwrap().is_none());
        assert!(matches!(tokens.revoke("nightly"), Err(ServeError::NoToken(_))));
    }

    #[test]
    fn no_file_holds_a_token() {
        let (folder, tokens, now) = tokens();
        let secrets = [tokens.make_program("a", now).unwrap(), tokens.make_link(now).unwrap()];
        for entry in fs::read_dir(folder.path().join("tokens")).unwrap() {
            let path = entry.unwrap().path();
            let text = format!("{} {}", path.display(), fs::read_to_string(&path).unwrap());
            assert!(secrets.iter().all(|secret| !text.contains(secret.as_str())), "{text}");
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt as _;
                assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
            }
        }
    }
}
