//! Texts, lists and files in messages of peers, with maximum lengths that are checked before they are allocated.

use core::fmt;
use core::marker::PhantomData;
use std::collections::BTreeMap;

use data_encoding::BASE64;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Reads a text of at most `MOST` bytes.
pub fn text<'d, D: Deserializer<'d>, const MOST: usize>(from: D) -> Result<String, D::Error> {
    from.deserialize_str(Text::<MOST>)
}

/// Reads a text of at most `MOST` bytes, or nothing.
pub fn text_if_any<'d, D: Deserializer<'d>, const MOST: usize>(from: D) -> Result<Option<String>, D::Error> {
    struct Bounded<const MOST: usize>(String);
    impl<'d, const MOST: usize> Deserialize<'d> for Bounded<MOST> {
        fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Self, D::Error> {
            text::<D, MOST>(from).map(Bounded)
        }
    }
    Ok(Option::<Bounded<MOST>>::deserialize(from)?.map(|Bounded(text)| text))
}

/// Reads a list of at most `MOST` items.
pub fn list<'d, D: Deserializer<'d>, T: Deserialize<'d>, const MOST: usize>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    from.deserialize_seq(List::<T, MOST>(PhantomData))
}

/// Reads files by their paths, in base64: at most `MOST`, with paths of at most `LONGEST_PATH` bytes.
pub fn files<'d, D: Deserializer<'d>, const MOST: usize>(
    from: D,
) -> Result<BTreeMap<String, Vec<u8>>, D::Error> {
    from.deserialize_map(Files::<MOST>)
}

/// Bytes of the longest path of a file.
const LONGEST_PATH: usize = 1024;

struct Text<const MOST: usize>;

impl<const MOST: usize> Visitor<'_> for Text<MOST> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a text of at most {MOST} bytes")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        if text.len() > MOST {
            return Err(E::custom(format_args!(
                "a string of {} bytes; at most {MOST} are allowed",
                text.len()
            )));
        }
        Ok(text.to_owned())
    }
}

struct List<T, const MOST: usize>(PhantomData<T>);

impl<'d, T: Deserialize<'d>, const MOST: usize> Visitor<'d> for List<T, MOST> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MOST}")
    }

    fn visit_seq<A: SeqAccess<'d>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(one) = from.next_element()? {
            if list.len() == MOST {
                return Err(A::Error::custom(format_args!("a list of more than {MOST} entries")));
            }
            list.push(one);
        }
        Ok(list)
    }
}

struct Files<const MOST: usize>;

impl<'d, const MOST: usize> Visitor<'d> for Files<MOST> {
    type Value = BTreeMap<String, Vec<u8>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {MOST} files by their paths")
    }

    fn visit_map<A: MapAccess<'d>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut files = BTreeMap::new();
        while let Some(Path(path)) = from.next_key()? {
            if files.len() == MOST {
                return Err(A::Error::custom(format_args!("more than {MOST} files")));
            }
            let Content(content) = from.next_value()?;
            files.insert(path, content);
        }
        Ok(files)
    }
}

struct Path(String);

impl<'d> Deserialize<'d> for Path {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Path, D::Error> {
        text::<D, LONGEST_PATH>(from).map(Path)
    }
}

/// The content of a file, decoded without copying its text first.
struct Content(Vec<u8>);

impl<'d> Deserialize<'d> for Content {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Content, D::Error> {
        struct Decoded;
        impl Visitor<'_> for Decoded {
            type Value = Vec<u8>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a file in base64")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Vec<u8>, E> {
                BASE64.decode(text.as_bytes()).map_err(E::custom)
            }
        }
        from.deserialize_str(Decoded).map(Content)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Said {
        #[serde(deserialize_with = "super::text::<_, 4>")]
        name: String,
        #[serde(deserialize_with = "super::list::<_, _, 2>")]
        list: Vec<u8>,
        #[serde(deserialize_with = "super::files::<_, 2>")]
        files: std::collections::BTreeMap<String, Vec<u8>>,
        #[serde(default, deserialize_with = "super::text_if_any::<_, 4>")]
        more: Option<String>,
    }

    fn read(text: &str) -> Result<Said, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_short_enough_is_read() {
        let said = read(r#"{"name":"abcd","list":[1,2],"files":{"a":"aGk=","b":""}}"#).unwrap();
        assert_eq!((said.name.as_str(), said.list.as_slice(), said.more), ("abcd", &[1, 2][..], None));
        assert_eq!((said.files["a"].as_slice(), said.files["b"].len()), (&b"hi"[..], 0));
        assert_eq!(
            read(r#"{"name":"","list":[],"files":{},"more":"x"}"#).unwrap().more.as_deref(),
            Some("x")
        );
    }

    #[test]
    fn what_is_too_long_is_refused() {
        for (text, why) in [
            (r#"{"name":"abcde","list":[],"files":{}}"#, "a string of 5 bytes; at most 4 are allowed"),
            (r#"{"name":"","list":[1,2,3],"files":{}}"#, "a list of more than 2 entries"),
            (r#"{"name":"","list":[],"files":{"a":"","b":"","c":""}}"#, "more than 2 files"),
            (r#"{"name":"","list":[],"files":{},"more":"abcde"}"#, "a string of 5 bytes"),
            (r#"{"name":"","list":[],"files":{"a":"????"}}"#, "invalid symbol"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
