//! Drafts of experiment files, kept beside the stored runs with their earlier versions. Each write names the version that it is based
//! on, and none replaces a version that its writer does not know.

use std::fs;
use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Mutex, PoisonError};

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use crate::api::{ApiError, Draft, DraftInfo, DraftVersion, NewDraft};
use crate::app::{App, Shared};
use crate::extract::{Body, Path, Query};
use crate::whole;

/// The folder in the store.
const FOLDER: &str = "drafts";
/// Facts about a draft, beside its versions.
const FACTS: &str = "draft.json";
/// Largest number of drafts.
const MAX_DRAFTS: usize = 1_000;
/// Largest number of versions of a draft.
const MAX_VERSIONS: usize = 100;
/// Seconds within which versions become one.
const TOGETHER_S: i64 = 60;
/// Largest draft, in bytes.
const MAX_TEXT: usize = 4 << 20;
/// Most bytes of all versions of a draft: the oldest ones make room, but not the last.
const MAX_OF_DRAFT: u64 = 8 << 20;

/// Access to the drafts, one request at a time.
static DRAFTS: Mutex<()> = Mutex::new(());

/// A draft as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Facts {
    name: String,
    /// The oldest first. Never empty.
    versions: Vec<DraftVersion>,
}

/// Choice of a version.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// The version [default: the last one].
    version: Option<u64>,
}

/// Lists the drafts, newest first.
#[utoipa::path(get, path = "/drafts", tag = "experiments", responses((status = 200, body = Vec<DraftInfo>)))]
pub(crate) async fn list(State(app): Shared) -> Result<Json<Vec<DraftInfo>>, ApiError> {
    app.blocking(|app| Ok(Json(all(&app.drafts())?))).await
}

/// A draft with its text.
#[utoipa::path(
    get, path = "/drafts/{id}", tag = "experiments", params(("id" = String, Path, description = "The draft"), Which),
    responses((status = 200, body = Draft))
)]
pub(crate) async fn draft(
    State(app): Shared,
    Path(id): Path<String>,
    Query(which): Query<Which>,
) -> Result<Json<Draft>, ApiError> {
    app.blocking(move |app| {
        let folder = folder_of(&app.drafts(), &id)?;
        let _alone = DRAFTS.lock().unwrap_or_else(PoisonError::into_inner);
        let none = || ApiError::not_found(format_args!("there is no draft `{}`", id.escape_debug()));
        let Facts { name, versions } = facts(&folder)?.ok_or_else(none)?;
        let last = versions.last().map_or(0, |version| version.number);
        let number = which.version.unwrap_or(last);
        let path = folder.join(format!("{number}.toml"));
        let text = fs::read_to_string(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                ApiError::not_found(format_args!("draft `{id}` has no version {number}"))
            }
            _ => ApiError::environment(error),
        })?;
        Ok(Json(Draft { id, name, text, versions }))
    })
    .await
}

/// Keeps a text as the next version of a draft, or as a new draft.
#[utoipa::path(
    put, path = "/drafts/{id}", tag = "experiments",
    params(("id" = String, Path, description = "The draft: letters, digits and dashes, chosen by the client")),
    request_body = NewDraft, responses((status = 200, body = DraftInfo))
)]
pub(crate) async fn keep(
    State(app): Shared,
    Path(id): Path<String>,
    Body(new): Body<NewDraft>,
) -> Result<Json<DraftInfo>, ApiError> {
    app.blocking(move |app| kept(&app.drafts(), &id, new, Timestamp::now()).map(Json)).await
}

/// Removes a draft with all its versions.
#[utoipa::path(
    delete, path = "/drafts/{id}", tag = "experiments", params(("id" = String, Path, description = "The draft")),
    responses((status = 200))
)]
pub(crate) async fn remove(State(app): Shared, Path(id): Path<String>) -> Result<(), ApiError> {
    app.blocking(move |app| {
        let folder = folder_of(&app.drafts(), &id)?;
        let _alone = DRAFTS.lock().unwrap_or_else(PoisonError::into_inner);
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ApiError::environment(error)),
            _ => Ok(()),
        }
    })
    .await
}

impl App {
    fn drafts(&self) -> PathBuf {
        self.store.directory().join(FOLDER)
    }
}

/// The folder of a draft.
fn folder_of(drafts: &FilePath, id: &str) -> Result<PathBuf, ApiError> {
    let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match (1..=64).contains(&id.len()) && is_plain {
        true => Ok(drafts.join(id)),
        false => Err(ApiError::input("a draft's id must be 1 to 64 letters, digits and dashes")),
    }
}

fn facts(folder: &FilePath) -> Result<Option<Facts>, ApiError> {
    match fs::read(folder.join(FACTS)) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(ApiError::environment),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ApiError::environment(error)),
    }
}

fn all(drafts: &FilePath) -> Result<Vec<DraftInfo>, ApiError> {
    let entries = match fs::read_dir(drafts) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(ApiError::environment)?,
    };
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    // What another process writes at this moment is in the next answer.
    let mut found: Vec<DraftInfo> =
        ids.filter_map(|id| facts(&drafts.join(&id)).ok()?.map(|facts| info(id, &facts))).collect();
    found.sort_by_key(|draft| core::cmp::Reverse(draft.at));
    Ok(found)
}

fn info(id: String, Facts { name, versions }: &Facts) -> DraftInfo {
    let last = versions.last();
    DraftInfo {
        id,
        name: name.clone(),
        version: last.map_or(0, |version| version.number),
        at: last.map_or(Timestamp::UNIX_EPOCH, |version| version.at),
    }
}

fn kept(drafts: &FilePath, id: &str, new: NewDraft, now: Timestamp) -> Result<DraftInfo, ApiError> {
    let NewDraft { name, text, base } = new;
    if text.len() > MAX_TEXT || name.len() > 200 {
        return Err(ApiError::input("a draft has at most 4 MiB, and its name 200 bytes"));
    }
    let folder = folder_of(drafts, id)?;
    let _alone = DRAFTS.lock().unwrap_or_else(PoisonError::into_inner);
    let before = facts(&folder)?;
    let last = before.as_ref().and_then(|facts| facts.versions.last().copied());
    if last.map(|last| last.number) != base {
        return Err(ApiError::conflict(match last {
            Some(last) => format!("this draft was changed elsewhere: its version is {}", last.number),
            None => "this draft was removed elsewhere".to_owned(),
        }));
    }
    if before.is_none() && all(drafts)?.len() >= MAX_DRAFTS {
        // No conflict: nobody else has changed this draft.
        return Err(ApiError::busy(format_args!("there are {MAX_DRAFTS} drafts: remove some first")));
    }
    let mut versions = before.map_or_else(Vec::new, |facts| facts.versions);
    let mut replaced = Vec::new();
    // The last version goes if the one before it is hardly older than the new one.
    if let [.., earlier, last] = versions[..]
        && now.as_second() - earlier.at.as_second() < TOGETHER_S
    {
        replaced.push(last.number);
        versions.pop();
    }
    let number = last.map_or(1, |last| last.number + 1);
    versions.push(DraftVersion { number, at: now });
    let mut bytes = text.len() as u64;
    let fitting = versions.iter().rev().skip(1).take_while(|version| {
        let length =
            fs::metadata(folder.join(format!("{}.toml", version.number))).map_or(0, |file| file.len());
        bytes += length;
        bytes <= MAX_OF_DRAFT
    });
    let surplus = versions.len() - (1 + fitting.count()).min(MAX_VERSIONS);
    replaced.extend(versions.drain(..surplus).map(|version| version.number));
    let facts = Facts { name, versions };
    let json = serde_json::to_vec(&facts).map_err(ApiError::environment)?;
    whole::write(&folder.join(format!("{number}.toml")), text.as_bytes()).map_err(ApiError::environment)?;
    whole::write(&folder.join(FACTS), &json).map_err(ApiError::environment)?;
    for number in replaced {
        // What is left there is in no list.
        let _ = fs::remove_file(folder.join(format!("{number}.toml")));
    }
    Ok(info(id.to_owned(), &facts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn put(folder: &FilePath, text: &str, base: Option<u64>, second: i64) -> Result<DraftInfo, ApiError> {
        kept(folder, "a-1", NewDraft { name: "a.toml".to_owned(), text: text.to_owned(), base }, at(second))
    }

    #[test]
    fn who_does_not_know_the_last_version_overwrites_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert_eq!(put(path, "one", None, 0).unwrap().version, 1);
        assert_eq!(put(path, "two", Some(1), 5).unwrap().version, 2);
        for base in [None, Some(1), Some(3)] {
            let refused = put(path, "other", base, 6).unwrap_err();
            assert_eq!(refused.status().as_u16(), 409, "{base:?}");
        }
        assert_eq!(fs::read_to_string(path.join("a-1/2.toml")).unwrap(), "two");
        assert_eq!(all(path).unwrap().len(), 1);
        assert!(folder_of(path, "../x").is_err() && folder_of(path, "").is_err());
    }

    #[test]
    fn versions_of_a_minute_become_one_and_the_first_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let mut base = None;
        for second in 0..600 {
            base = Some(put(path, &format!("{second}"), base, second).unwrap().version);
        }
        let kept: Vec<i64> = facts(&path.join("a-1"))
            .unwrap()
            .unwrap()
            .versions
            .iter()
            .map(|v| v.at.as_second() - at(0).as_second())
            .collect();
        assert!((10..=12).contains(&kept.len()), "{kept:?}");
        assert!(kept.windows(2).rev().skip(1).all(|pair| pair[1] - pair[0] >= 59), "{kept:?}");
        assert_eq!((kept[0], *kept.last().unwrap()), (0, 599));
        for minute in 0..200 {
            base = Some(put(path, &format!("m{minute}"), base, 1_000 + 61 * minute).unwrap().version);
        }
        assert_eq!(fs::read_dir(path.join("a-1")).unwrap().count(), MAX_VERSIONS + 1, "with the facts");
    }

    #[test]
    fn large_versions_make_room_for_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let (path, text) = (folder.path(), "x".repeat(3 << 20));
        let mut base = None;
        for minute in 0..5 {
            base = Some(put(path, &text, base, 61 * minute).unwrap().version);
        }
        assert_eq!(fs::read_dir(path.join("a-1")).unwrap().count(), 2 + 1, "with the facts");
    }
}
