//! Where the files of a team's runs are, as the store's address says.

use crate::StoreError;

/// A bucket, and what the names of our files in it begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilesAddress {
    pub(crate) bucket: String,
    /// Without slashes at its ends; may be empty.
    pub(crate) prefix: String,
}

/// Divides `postgresql://...?files=s3://BUCKET/PREFIX` into the address of the database and that of the files.
///
/// # Errors
/// If there are no rows (`s3://...` alone), or the files are nowhere.
pub(crate) fn split(url: &str) -> Result<(String, Option<FilesAddress>), StoreError> {
    if url.starts_with("s3://") {
        let why = "a bucket stores only files; a store also needs a database for its runs: give both, as \
                   `postgresql://USER@HOST/DATABASE?files=s3://BUCKET/PREFIX`";
        return Err(StoreError::Address { address: url.to_owned(), why: why.to_owned() });
    }
    let Some((place, parameters)) = url.split_once('?') else { return Ok((url.to_owned(), None)) };
    let (mut files, mut others) = (None, Vec::new());
    for parameter in parameters.split('&') {
        match parameter.strip_prefix("files=") {
            Some(address) => files = Some(FilesAddress::parse(address)?),
            None => others.push(parameter),
        }
    }
    let database = if others.is_empty() { place.to_owned() } else { format!("{place}?{}", others.join("&")) };
    Ok((database, files))
}

impl FilesAddress {
    fn parse(text: &str) -> Result<FilesAddress, StoreError> {
        let text = text.replace("%2F", "/").replace("%3A", ":");
        let wrong = |why: &str| StoreError::Address { address: format!("files={text}"), why: why.to_owned() };
        let Some(place) = text.strip_prefix("s3://") else {
            return Err(wrong("files are kept in a bucket: `files=s3://BUCKET/PREFIX`"));
        };
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if bucket.is_empty() || !bucket.chars().all(is_name) {
            return Err(wrong("it names no bucket: expected `files=s3://BUCKET/PREFIX`"));
        }
        Ok(FilesAddress { bucket: bucket.to_owned(), prefix: prefix.trim_matches('/').to_owned() })
    }

    /// As in the address.
    pub(crate) fn shown(&self) -> String {
        match self.prefix.as_str() {
            "" => format!("s3://{}", self.bucket),
            prefix => format!("s3://{}/{prefix}", self.bucket),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_from_the_database() {
        let both = |url| split(url).map(|(database, files)| (database, files.map(|files| files.shown())));
        let (database, files) = both("postgresql://a@b/c?files=s3://team/runs/&sslmode=require").unwrap();
        assert_eq!(
            (database.as_str(), files.as_deref()),
            ("postgresql://a@b/c?sslmode=require", Some("s3://team/runs"))
        );
        assert_eq!(both("postgresql://a@b/c").unwrap(), ("postgresql://a@b/c".to_owned(), None));
        let (database, files) = both("postgresql://a@b/c?files=s3%3A%2F%2Fteam").unwrap();
        assert_eq!((database.as_str(), files.as_deref()), ("postgresql://a@b/c", Some("s3://team")));
        for (wrong, why) in [
            ("s3://team/runs", "needs a database"),
            ("postgresql://a@b/c?files=/srv/runs", "files=s3://BUCKET"),
            ("postgresql://a@b/c?files=s3://", "names no bucket"),
            ("postgresql://a@b/c?files=s3://a b/c", "names no bucket"),
        ] {
            let said = both(wrong).unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        }
    }
}
